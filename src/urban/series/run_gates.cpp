// The acceptance gates of a run hour by hour, on the user's own city or on the sample.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "urban/run/report.hpp"
#include "urban/series/whole_series.hpp"

namespace lockstep::urban {
namespace {

constexpr size_t kGateSteps = 4;
constexpr double kScalingLimit = 1.25;
constexpr int64_t kFewGroups = 8;
/// Rounds of one worker and of several in turn, the best of each counts; large cities take fewer.
constexpr int kScalingRounds = 4;
constexpr double kScalingSeconds = 4;

int64_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  int64_t count = 0;
  for (size_t k = 0; k < a.size(); ++k)
    count += std::memcmp(&a[k], &b[k], sizeof(float)) != 0 && !(std::isnan(a[k]) && std::isnan(b[k]));
  return count;
}

GridDifference difference_of(const std::vector<float>& a, const std::vector<float>& b) {
  GridDifference found;
  double sum = 0;
  size_t both = 0, alike = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    const bool finite = std::isfinite(a[k]);
    alike += finite == std::isfinite(b[k]);
    if (!finite || !std::isfinite(b[k])) continue;
    const double d = std::abs(static_cast<double>(a[k]) - static_cast<double>(b[k]));
    sum += d;
    found.max_abs_diff = std::max(found.max_abs_diff, d);
    ++both;
  }
  if (both > 0) found.mean_abs_diff = sum / static_cast<double>(both);
  if (!a.empty())
    found.finite_equal_percent = 100 * static_cast<double>(alike) / static_cast<double>(a.size());
  return found;
}

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
  // Tiles of a small city are too little work for a large GPU to share.
  const Shape sample = context.device().info().kind == DeviceKind::cuda ? Shape{512, 528} : Shape{160, 176};
  SeriesOptions options =
      given.city.dsm.empty() ? sample_series(given, scratch.path, {9, 12, 15, 18}, sample) : given;
  if (options.folder.empty()) options.folder = scratch.path / "out";
  options.pictures = options.video = false;
  SeriesInputs inputs = read_series_inputs(options);
  keep_some_steps(inputs);
  const Walls walls = walls_of_series(context, inputs, options.walls);
  const std::vector<SeriesOutput>& outputs = options.outputs;
  const auto computed = [&](Context& on, const TileOptions& tiles) {
    return compute_series(on, inputs, walls, outputs, tiles);
  };
  std::vector<Gate> gates;
  const auto add = [&](const std::string& gate, double value, double limit, const char* unit,
                       const std::string& note) {
    gates.push_back({gate, value, limit, value <= limit, unit, note, {}});
  };
  const auto add_equal = [&](const std::string& gate, const ComputedSeries& a, const ComputedSeries& b,
                             const std::string& note) {
    add(gate, static_cast<double>(differing(a.values, b.values)), 0, "differing values", note);
    gates.back().difference = difference_of(a.values, b.values);
  };
  const std::string device = context.device().info().name;
  const int64_t longer = std::max(inputs.city.rows, inputs.city.cols);
  TileOptions whole = options.tiles, tiled = options.tiles;
  whole.on_progress = tiled.on_progress = {};
  whole.side = 0;
  whole.workers = 1;
  const ComputedSeries base = computed(context, whole);

  Context cpu(like(context, "cpu"));
  const ComputedSeries on_cpu = computed(cpu, whole);
  const bool webgpu = context.device().info().kind == DeviceKind::webgpu;
  if (webgpu || context.numerics() == Numerics::fast) {
    const GridDifference difference = difference_of(base.values, on_cpu.values);
    add("parity with the CPU", difference.max_abs_diff, 0.1, "largest difference", device);
    gates.back().difference = difference;
  } else {
    add_equal("parity with the CPU", base, on_cpu, device);
  }

  tiled.side =
      options.tiles.side > 0 ? options.tiles.side : std::max<int64_t>(32, (longer / 3 + 15) / 16 * 16);
  tiled.workers = 1;
  const ComputedSeries one_worker = computed(context, tiled);
  add_equal("tiled = untiled", base, one_worker,
            fmt::format("{} tiles of {}", one_worker.plan.tiles.size(), tiled.side));

  ContextOptions limited = like(context, device);
  limited.lower_limits = [](Limits& limits) {
    for (int64_t& groups : limits.groups) groups = std::min<int64_t>(groups, kFewGroups);
  };
  Context small(limited);
  add_equal("more groups than a dispatch holds", base, computed(small, whole),
            fmt::format("at most {} groups an axis", kFewGroups));

  tiled.workers = options.tiles.workers > 1 ? options.tiles.workers : 2;
  const ComputedSeries workers = computed(context, tiled);
  add("tiles in flight", workers.in_flight, tiled.workers, "tiles", fmt::format("{} workers", tiled.workers));
  add_equal("tiles in flight change nothing", base, workers, fmt::format("{} workers", tiled.workers));
  double several = workers.seconds, one = one_worker.seconds, spent = several + one;
  const int in_flight = tiled.workers;
  for (int round = 1; round < kScalingRounds && spent < kScalingSeconds; ++round)
    for (const bool alone : {true, false}) {
      tiled.workers = alone ? 1 : in_flight;
      const double seconds = computed(context, tiled).seconds;
      spent += seconds;
      (alone ? one : several) = std::min(alone ? one : several, seconds);
    }
  add("worker scaling", several / one, kScalingLimit, "of the time of one worker",
      fmt::format("{:.4f} s and {:.4f} s", several, one));
  return gates;
}

nlohmann::ordered_json to_json(const std::vector<Gate>& gates) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Gate& g : gates) {
    rows.push_back({{"gate", g.gate},
                    {"value", g.value},
                    {"limit", g.limit},
                    {"pass", g.pass},
                    {"unit", g.unit},
                    {"note", g.note}});
    if (!g.difference) continue;
    rows.back()["mean_abs_diff"] = g.difference->mean_abs_diff;
    rows.back()["max_abs_diff"] = g.difference->max_abs_diff;
    rows.back()["finite_equal_percent"] = g.difference->finite_equal_percent;
  }
  return {{"gates", rows}};
}

}  // namespace lockstep::urban
