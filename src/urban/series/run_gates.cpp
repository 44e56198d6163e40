// The acceptance gates of a run hour by hour, on the user's own city or on the sample.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/atomic_file.hpp"
#include "lockstep/error.hpp"
#include "urban/run/report.hpp"
#include "urban/series/tiles.hpp"
#include "urban/walls/walls.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;

constexpr size_t kGateSteps = 4;
constexpr double kScalingLimit = 1.25;
constexpr int64_t kFewGroups = 8;

/// All outputs of all steps, whole grids one behind the other.
struct Computed {
  std::vector<float> values;
  TilePlan plan;
  int in_flight = 0;
  double seconds = 0;
};

Computed compute_all(Context& context, const SeriesInputs& inputs, const Walls& walls,
                     const std::vector<SeriesOutput>& outputs, const TileOptions& options) {
  const SeriesTiles tiles(inputs, walls, outputs);
  Computed out;
  out.plan = plan_tiles(context, inputs.city, tiles.job(), options, 0);
  const size_t pixels = static_cast<size_t>(inputs.city.pixels());
  out.values.resize(pixels * outputs.size() * inputs.steps.size());
  std::vector<size_t> numbers(out.plan.tiles.size());
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = k;
  SeriesClock clock;
  const auto begin = std::chrono::steady_clock::now();
  out.in_flight = for_each_tile(numbers, out.plan.workers, [&](size_t number) {
    const Tile& tile = out.plan.tiles[number];
    const StepLayout layout = tiles.layout(tile);
    std::vector<float> step(layout.floats());
    StepSink sink;
    sink.begin = [&](size_t) { return step.data(); };
    sink.end = [&](size_t k) {
      for (size_t o = 0; o < outputs.size(); ++o)
        for (int64_t row = 0; row < tile.rows; ++row)
          std::copy_n(layout.plane(step.data(), o) + row * tile.cols, tile.cols,
                      &out.values[(k * outputs.size() + o) * pixels +
                                  static_cast<size_t>((tile.row + row) * inputs.city.cols + tile.col)]);
    };
    tiles.compute(context, tile, out.plan.workers > 1, sink, [](int) {}, clock);
  });
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

int64_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  int64_t count = 0;
  for (size_t k = 0; k < a.size(); ++k)
    count += std::memcmp(&a[k], &b[k], sizeof(float)) != 0 && !(std::isnan(a[k]) && std::isnan(b[k]));
  return count;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t k = 0; k < a.size(); ++k)
    if (std::isfinite(a[k]) && std::isfinite(b[k]))
      largest = std::max(largest, std::abs(static_cast<double>(a[k]) - static_cast<double>(b[k])));
  return largest;
}

/// The sample city and a clear day, as files.
SeriesOptions sample_options(const SeriesOptions& given, const fs::path& folder) {
  SampleRunOptions sample;
  sample.output = {folder / "city", GridFormat::npy, false};
  sample.rows = 160;
  sample.cols = 176;
  run(sample);
  SeriesOptions options = given;
  options.city.dsm = folder / "city/dsm.npy";
  options.city.dem = folder / "city/dem.npy";
  options.city.cdsm = folder / "city/cdsm.npy";
  options.city.tdsm = folder / "city/tdsm.npy";
  options.city.pixel_size_m = 1;
  options.latitude_deg = 57.7;
  options.longitude_deg = 11.97;
  options.utc_offset_h = 1;
  std::string text = "time,Ta,RH,wind,Kglobal\n";
  for (const auto& [hour, global] : {std::pair{9, 450}, {12, 780}, {15, 620}, {18, 250}})
    text += fmt::format("2015-06-21T{:02}:00,{},{},2.5,{}\n", hour, 15 + hour / 2, 75 - hour, global);
  options.weather = folder / "weather.csv";
  write_file(options.weather, text);
  return options;
}

/// A folder that is gone with the object.
struct ScratchFolder {
  fs::path path;
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "lockstep-gates-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw InputError("no folder for the gates' files", fs::temp_directory_path().string(),
                       "a place to write");
    path = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

/// A few steps spread over those with sun, so that the gates end soon on large cities.
void keep_some_steps(SeriesInputs& inputs) {
  std::vector<size_t> sunny;
  for (size_t k = 0; k < inputs.steps.size(); ++k)
    if (inputs.steps[k].forcing.day()) sunny.push_back(k);
  if (sunny.empty()) sunny.push_back(0);
  std::vector<WeatherStep> steps;
  std::vector<io::WeatherRow> rows;
  const size_t count = std::min(kGateSteps, sunny.size());
  for (size_t k = 0; k < count; ++k) {
    const size_t at = sunny[k * sunny.size() / count];
    steps.push_back(inputs.steps[at]);
    rows.push_back(inputs.weather.rows[at]);
  }
  inputs.steps = steps;
  inputs.weather.rows = rows;
}

ContextOptions like(Context& context, const std::string& device) {
  ContextOptions options;
  options.device = device;
  options.numerics = context.numerics();
  options.fallback = false;
  return options;
}

}  // namespace

std::vector<Gate> run_gates(Context& context, const SeriesOptions& given) {
  const ScratchFolder scratch;
  SeriesOptions options = given.city.dsm.empty() ? sample_options(given, scratch.path) : given;
  if (options.folder.empty()) options.folder = scratch.path / "out";
  options.pictures = options.video = false;
  SeriesInputs inputs = read_series_inputs(options);
  keep_some_steps(inputs);
  const Walls walls = [&] {
    if (inputs.walls) return *inputs.walls;
    Walls found{Raster(inputs.city.rows, inputs.city.cols), Raster(inputs.city.rows, inputs.city.cols)};
    stream_walls(context, inputs.city, options.walls, {}, [&](const Tile& tile, const TileResult& grids) {
      stitch(tile, grids.plane(0), found.height);
      stitch(tile, grids.plane(1), found.aspect);
    });
    return found;
  }();
  const std::vector<SeriesOutput>& outputs = options.outputs;
  const auto computed = [&](Context& on, const TileOptions& tiles) {
    return compute_all(on, inputs, walls, outputs, tiles);
  };
  std::vector<Gate> gates;
  const auto add = [&](const std::string& gate, double value, double limit, const char* unit,
                       const std::string& note) {
    gates.push_back({gate, value, limit, value <= limit, unit, note});
  };
  const std::string device = context.device().info().name;
  const int64_t longer = std::max(inputs.city.rows, inputs.city.cols);
  TileOptions whole = options.tiles, tiled = options.tiles;
  whole.on_progress = tiled.on_progress = {};
  whole.side = 0;
  whole.workers = 1;
  const Computed base = computed(context, whole);

  Context cpu(like(context, "cpu"));
  const Computed on_cpu = computed(cpu, whole);
  const bool webgpu = context.device().info().kind == DeviceKind::webgpu;
  if (webgpu || context.numerics() == Numerics::fast)
    add("parity with the CPU", largest_difference(base.values, on_cpu.values), 0.1, "largest difference",
        device);
  else
    add("parity with the CPU", static_cast<double>(differing(base.values, on_cpu.values)), 0,
        "differing values", device);

  tiled.side =
      options.tiles.side > 0 ? options.tiles.side : std::max<int64_t>(32, (longer / 3 + 15) / 16 * 16);
  tiled.workers = 1;
  const Computed one_worker = computed(context, tiled);
  add("tiled = untiled", static_cast<double>(differing(base.values, one_worker.values)), 0,
      "differing values", fmt::format("{} tiles of {}", one_worker.plan.tiles.size(), tiled.side));

  ContextOptions limited = like(context, device);
  limited.lower_limits = [](Limits& limits) {
    for (int64_t& groups : limits.groups) groups = std::min<int64_t>(groups, kFewGroups);
  };
  Context small(limited);
  add("more groups than a dispatch holds",
      static_cast<double>(differing(base.values, computed(small, whole).values)), 0, "differing values",
      "at most 8 groups an axis");

  tiled.workers = options.tiles.workers > 1 ? options.tiles.workers : 2;
  const Computed workers = computed(context, tiled);
  add("tiles in flight", workers.in_flight, tiled.workers, "tiles", fmt::format("{} workers", tiled.workers));
  add("tiles in flight change nothing", static_cast<double>(differing(base.values, workers.values)), 0,
      "differing values", fmt::format("{} workers", tiled.workers));
  add("worker scaling", workers.seconds / one_worker.seconds, kScalingLimit, "of the time of one worker",
      fmt::format("{:.2f} s and {:.2f} s", workers.seconds, one_worker.seconds));
  return gates;
}

nlohmann::ordered_json to_json(const std::vector<Gate>& gates) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Gate& g : gates)
    rows.push_back({{"gate", g.gate},
                    {"value", g.value},
                    {"limit", g.limit},
                    {"pass", g.pass},
                    {"unit", g.unit},
                    {"note", g.note}});
  return {{"gates", rows}};
}

}  // namespace lockstep::urban
