#include "urban/series/tiled_series.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "urban/series/series_walls.hpp"
#include "urban/series/tiles.hpp"

namespace lockstep::urban {
namespace {

SeriesOptions without_files(SeriesOptions options) {
  options.pictures = options.video = false;
  return options;
}

}  // namespace

struct TiledSeries::Parts {
  Context& context;
  const SeriesOptions options;
  const SeriesInputs inputs;
  const Walls walls;
  const SeriesTiles series;
  TilePlan plan;
  std::string key;

  Parts(Context& on, const SeriesOptions& given, const SeriesArrays& arrays)
      : context(on),
        options(without_files(given)),
        inputs(read_series_inputs(options, arrays)),
        walls(walls_of_series(context, inputs, options.walls)),
        series(inputs, walls, options.outputs) {
    TileJob job = series.job();
    plan = plan_tiles(context, inputs.city, job, options.tiles, 0);
    job.options = series.key_text();
    key = fmt::format("{}, tiles of {}", tile_key(context, inputs.city, job), plan.side);
  }
};

TiledSeries::TiledSeries(Context& context, const SeriesOptions& options, const SeriesArrays& arrays)
    : parts_(std::make_unique<Parts>(context, options, arrays)) {}
TiledSeries::~TiledSeries() = default;

const std::vector<Tile>& TiledSeries::tiles() const { return parts_->plan.tiles; }
const std::string& TiledSeries::key() const { return parts_->key; }
int64_t TiledSeries::rows() const { return parts_->inputs.city.rows; }
int64_t TiledSeries::cols() const { return parts_->inputs.city.cols; }

std::vector<std::string> TiledSeries::times() const {
  std::vector<std::string> times;
  for (const WeatherStep& step : parts_->inputs.steps) times.push_back(io::civil_text(step.time));
  return times;
}

const std::vector<SeriesPoint>& TiledSeries::points() const { return parts_->inputs.points; }
SeriesPointTable TiledSeries::point_table() const { return SeriesPointTable(parts_->inputs); }

TiledSeries::Values TiledSeries::compute(size_t number) const {
  if (number >= tiles().size())
    throw InputError(fmt::format("tile {}", number), "tiles of a series",
                     fmt::format("0 to {}", tiles().size() - 1));
  const Tile& tile = tiles()[number];
  const StepLayout layout = parts_->series.layout(tile);
  const size_t steps = parts_->inputs.steps.size(), outputs = parts_->options.outputs.size(),
               point_floats = layout.points().size() * kPointValues;
  Values values{std::vector<float>(steps * outputs * layout.pixels()),
                std::vector<float>(steps * point_floats)};
  const auto memory = [&](size_t step) {
    StepMemory of_step{{}, values.points.data() + step * point_floats};
    for (size_t o = 0; o < outputs; ++o)
      of_step.planes.push_back(values.grids.data() + (step * outputs + o) * layout.pixels());
    return of_step;
  };
  const StepSink sink{memory, [](size_t) {}};
  TileStream own;
  parts_->series.compute(parts_->context, tile, &own, sink, [](int) {}, nullptr);
  return values;
}

}  // namespace lockstep::urban
