#include "urban/series/whole_series.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "core/files/atomic_file.hpp"
#include "lockstep/error.hpp"
#include "urban/series/arrays.hpp"

namespace lockstep::urban {

namespace {

/// Global radiation (W/m²) of the hours that end at 1:00 … 24:00.
constexpr int kClearDay[24] = {0,   0,   0,   15,  60,  150, 270, 450, 520, 630, 720, 780,
                               800, 780, 730, 650, 540, 420, 290, 170, 75,  5,   0,   0};

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "lockstep-urban-XXXXXX").string();
  if (!::mkdtemp(name.data()))
    throw InputError("no folder for temporary files", std::filesystem::temp_directory_path().string(),
                     "a folder that can be written");
  path = name;
}
ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

SeriesOptions sample_series(const SeriesOptions& given, const std::filesystem::path& folder,
                            const std::vector<int>& hours, const Shape& shape) {
  SampleRunOptions sample;
  sample.output = {folder / "city", GridFormat::npy, false};
  sample.rows = shape[0];
  sample.cols = shape[1];
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
  for (const int hour : hours)
    text += fmt::format("{}T{:02}:00,{},{},2.5,{}\n", hour < 24 ? "2015-06-21" : "2015-06-22", hour % 24,
                        15 + (hour <= 15 ? hour : 30 - hour) / 2, 75 - hour, kClearDay[hour - 1]);
  options.weather = folder / "weather.csv";
  write_file(options.weather, text);
  return options;
}

ComputedSeries compute_series(Context& context, const SeriesInputs& inputs, const Walls& walls,
                              const std::vector<SeriesOutput>& outputs, const TileOptions& options) {
  const SeriesTiles tiles(inputs, walls, outputs);
  ComputedSeries out;
  out.plan = plan_tiles(context, inputs.city, tiles.job(), options, 0);
  const size_t pixels = static_cast<size_t>(inputs.city.pixels());
  out.values.resize(pixels * outputs.size() * inputs.steps.size());
  std::vector<size_t> numbers(out.plan.tiles.size());
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = k;
  SeriesClock clock;
  std::atomic<int64_t> done{0};
  const int64_t total = static_cast<int64_t>(numbers.size()) * tiles.parts();
  const auto advance = [&](int parts) {
    const int64_t now = done += parts;
    if (options.on_progress) options.on_progress(std::min(now, total), total);
  };
  const auto begin = std::chrono::steady_clock::now();
  out.in_flight = for_each_tile(numbers, out.plan.workers, [&](size_t number) {
    const Tile& tile = out.plan.tiles[number];
    const StepLayout layout = tiles.layout(tile);
    std::vector<float> step(layout.floats());
    StepSink sink;
    sink.begin = [&](size_t) { return layout.memory(step.data()); };
    sink.end = [&](size_t k) {
      for (size_t o = 0; o < outputs.size(); ++o)
        stitch(tile, layout.plane(step.data(), o), out.values.data() + (k * outputs.size() + o) * pixels,
               inputs.city.cols);
    };
    TileStream own;
    tiles.compute(context, tile, out.plan.workers > 1 ? &own : nullptr, sink, advance, &clock);
  });
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

SeriesGrids compute(Context& context, const SeriesOptions& options, const SeriesArrays& arrays) {
  SeriesOptions read = options;
  read.points.clear();
  read.pictures = read.video = false;
  const SeriesInputs inputs = read_series_inputs(read, arrays);
  const Walls walls = walls_of_series(context, inputs, options.walls);
  SeriesGrids grids;
  grids.rows = inputs.city.rows;
  grids.cols = inputs.city.cols;
  for (const WeatherStep& step : inputs.steps) grids.times.push_back(io::civil_text(step.time));
  grids.values = compute_series(context, inputs, walls, options.outputs, options.tiles).values;
  return grids;
}

}  // namespace lockstep::urban
