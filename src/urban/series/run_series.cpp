// A whole run hour by hour: tiles outside, the time series of each inside, files written meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "core/files/atomic_file.hpp"
#include "core/numbers/statistics.hpp"
#include "core/platform/mapped_file.hpp"
#include "core/platform/process.hpp"
#include "core/reports/host_stage.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "core/reports/telemetry.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/documents.hpp"
#include "urban/series/arrays.hpp"
#include "urban/series/outputs/point_table.hpp"
#include "urban/series/outputs/writer.hpp"
#include "urban/series/tiles.hpp"
#include "urban/tiles/tile_store.hpp"
#include "urban/walls/walls.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
using RunClock = std::chrono::steady_clock;

double since(RunClock::time_point start) {
  return std::chrono::duration<double>(RunClock::now() - start).count();
}

double mean_of(const std::vector<double>& values) {
  return values.empty()
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct StoredTile;

/// The parts of one run.
struct SeriesRun {
  Context& context;
  const SeriesOptions& options;
  const SeriesInputs& inputs;
  const SeriesTiles& tiles;
  SeriesWriter& writer;
  SeriesPointTable& points;
  SeriesResult& result;
  SeriesClock clock;
  std::atomic<int64_t> done{0};
  int64_t total = 0;
  double stitch_seconds = 0;
  std::vector<float> buffer;

  void advance(int parts) {
    const int64_t now = done += parts;
    if (options.tiles.on_progress) options.tiles.on_progress(std::min(now, total), total);
  }
  void run_whole(const Tile& tile);
  void run_tiled(const TilePlan& plan, TileStore& store);
  void assemble(const TilePlan& plan, const TileStore& store);
  void take_rows(StoredTile& stored, size_t step, int64_t begin, int64_t end, int64_t cols,
                 StepPlanes& planes);
  void record(const TileJob& job);
};

/// One tile that is the raster: its steps go to the files as they come.
void SeriesRun::run_whole(const Tile& tile) {
  const auto begin = RunClock::now();
  const StepLayout layout = tiles.layout(tile);
  std::vector<float> at_points(layout.points().size() * kPointValues);
  StepPlanes planes;  // of the step that has begun
  StepSink sink;
  sink.begin = [&](size_t) {
    if (planes.empty()) planes = writer.begin();
    StepMemory memory{{}, at_points.data()};
    for (std::vector<float>& plane : planes) memory.planes.push_back(plane.data());
    return memory;
  };
  sink.end = [&](size_t k) {
    for (size_t p = 0; p < layout.points().size(); ++p)
      points.take(layout.points()[p], k, at_points.data() + p * kPointValues);
    writer.end(k, std::exchange(planes, {}));
  };
  tiles.compute(context, tile, false, sink, [this](int parts) { advance(parts); }, clock);
  result.tiles.queue_depth_peak = 1;
  result.tiles.tile_seconds.push_back(since(begin));
  result.tiles.turnaround_seconds.push_back(since(begin));
}

/// Several tiles: each keeps its series in a file until all are there.
void SeriesRun::run_tiled(const TilePlan& plan, TileStore& store) {
  std::mutex reporting;
  const auto bytes_of = [&](const Tile& tile) {
    return static_cast<int64_t>(tiles.layout(tile).floats() * sizeof(float) * inputs.steps.size());
  };
  std::vector<size_t> open;
  for (size_t number = 0; number < plan.tiles.size(); ++number) {
    const Tile& tile = plan.tiles[number];
    const platform::MappedFile series(store.file(tile), bytes_of(tile));
    if (store.load(tile, {series.data(), static_cast<size_t>(bytes_of(tile))})) {
      ++result.tiles.resumed;
      advance(tiles.parts());
    } else {
      open.push_back(number);
    }
  }
  if (result.tiles.resumed > 0)
    logging::info("{}: {} of {} tiles are taken over from an earlier run", kStepStage, result.tiles.resumed,
                  result.tiles.tiles);
  result.tiles.queue_depth_peak = for_each_tile(open, plan.workers, [&](size_t number) {
    const Tile& tile = plan.tiles[number];
    const auto begin = RunClock::now();
    const StepLayout layout = tiles.layout(tile);
    const platform::MappedFile series(store.file(tile), bytes_of(tile));
    float* const values = reinterpret_cast<float*>(series.data());
    const StepSink sink{[&](size_t k) { return layout.memory(values + k * layout.floats()); }, [](size_t) {}};
    tiles.compute(context, tile, plan.workers > 1, sink, [this](int parts) { advance(parts); }, clock);
    const double seconds = since(begin);
    store.save(tile, {series.data(), static_cast<size_t>(bytes_of(tile))});
    const std::lock_guard lock(reporting);
    result.tiles.tile_seconds.push_back(seconds);
    result.tiles.turnaround_seconds.push_back(since(begin));
  });
  assemble(plan, store);
}

/// A finished tile that a band of rows crosses.
struct StoredTile {
  const Tile& tile;
  StepLayout layout;
  TileStore::Saved file;
  std::string name;

  StoredTile(const Tile& t, StepLayout l, const TileStore& store)
      : tile(t), layout(std::move(l)), file(store, t), name(store.file(t).string()) {}
  /// `count` floats of a step, from number `first` on.
  void read(size_t step, size_t first, float* values, size_t count) {
    const size_t floats = step * layout.floats() + first;
    if (!file.read(floats * sizeof(float), std::as_writable_bytes(std::span(values, count))))
      throw InputError("a finished tile cannot be read", name, "the tile of this run");
  }
};

/// Band by band, and step by step in it, the tiles' cores put into grids.
void SeriesRun::assemble(const TilePlan& plan, const TileStore& store) {
  const int64_t cols = inputs.city.cols;
  for (int64_t begin = 0; begin < inputs.city.rows; begin += writer.rows()) {
    const int64_t end = std::min(begin + writer.rows(), inputs.city.rows);
    std::vector<StoredTile> crossed;
    for (const Tile& tile : plan.tiles)
      if (tile.row < end && tile.row + tile.rows > begin)
        crossed.emplace_back(tile, tiles.layout(tile), store);
    for (size_t k = 0; k < inputs.steps.size(); ++k) {
      StepPlanes planes = writer.begin();
      const auto started = RunClock::now();
      for (StoredTile& stored : crossed) take_rows(stored, k, begin, end, cols, planes);
      stitch_seconds += since(started);
      writer.end(k, std::move(planes), begin);
    }
  }
}

/// Takes from a stored tile its part of rows [begin, end); its points with its first row.
void SeriesRun::take_rows(StoredTile& stored, size_t step, int64_t begin, int64_t end, int64_t cols,
                          StepPlanes& planes) {
  const Tile& tile = stored.tile;
  const int64_t first = std::max(begin, tile.row), last = std::min(end, tile.row + tile.rows);
  const size_t pixels = stored.layout.pixels(), part = static_cast<size_t>((last - first) * tile.cols);
  buffer.resize(std::max(part, kPointValues));
  for (size_t o = 0; o < planes.size(); ++o) {
    stored.read(step, o * pixels + static_cast<size_t>((first - tile.row) * tile.cols), buffer.data(), part);
    for (int64_t row = first; row < last; ++row)
      std::copy_n(buffer.data() + (row - first) * tile.cols, tile.cols,
                  &planes[o][static_cast<size_t>((row - begin) * cols + tile.col)]);
  }
  for (size_t p = 0; first == tile.row && p < stored.layout.points().size(); ++p) {
    stored.read(step, planes.size() * pixels + p * kPointValues, buffer.data(), kPointValues);
    points.take(stored.layout.points()[p], step, buffer.data());
  }
}

/// Metrics of the run, and their line of telemetry.
void SeriesRun::record(const TileJob& job) {
  SeriesTimes& m = result.metrics;
  const TileReport& t = result.tiles;
  m.timestep_wall_time_s = mean_of(clock.step_seconds);
  m.timestep_wall_time_p95_s = percentile(clock.step_seconds, 0.95);
  m.tile_turnaround_ms = mean_of(t.turnaround_seconds) * 1e3;
  m.tile_turnaround_p95_ms = percentile(t.turnaround_seconds, 0.95) * 1e3;
  m.stitch_ms = stitch_seconds * 1e3;
  m.copy_ms = clock.copy_seconds * 1e3;
  m.write_ms = writer.write_seconds() * 1e3;
  m.wait_ms = writer.wait_seconds() * 1e3;
  int64_t fallbacks = 0;
  for (const StageRecord& stage : context.stages()) {
    if (!stage.stage.starts_with("urban.")) continue;
    fallbacks += stage.fallbacks;
  }
  double on_gpu_ms = 0;
  Fields by_stage;
  for (const char* stage : {"shadow", "gvf", "radiation", "sky", "comfort"}) {
    m.stage_time_ms[stage] = clock.stages[stage] * 1e3;
    m.gpu_stage_time_ms[stage] = clock.gpu_stages[stage] * 1e3;
    on_gpu_ms += m.gpu_stage_time_ms[stage];
    by_stage.emplace_back(fmt::format("stage_time_ms_{}", stage), m.stage_time_ms[stage]);
    by_stage.emplace_back(fmt::format("gpu_stage_time_ms_{}", stage), m.gpu_stage_time_ms[stage]);
  }
  Fields fields = {{"timestep_wall_time_s", m.timestep_wall_time_s},
                   {"timestep_wall_time_p95_s", m.timestep_wall_time_p95_s},
                   {"tile_turnaround_ms", m.tile_turnaround_ms},
                   {"tile_turnaround_p95_ms", m.tile_turnaround_p95_ms},
                   {"gpu_stage_time_ms", on_gpu_ms},
                   {"queue_depth_peak", t.queue_depth_peak},
                   {"in_flight_limit", t.workers},
                   {"gpu_fallback_count", fallbacks},
                   {"stitch_ms", m.stitch_ms},
                   {"copy_ms", m.copy_ms},
                   {"write_ms", m.write_ms},
                   {"wait_ms", m.wait_ms},
                   {"tile_side", t.side},
                   {"tiles", t.tiles},
                   {"tiles_resumed", t.resumed},
                   {"steps", result.steps}};
  fields.insert(fields.end(), by_stage.begin(), by_stage.end());
  Telemetry::global().event(std::string(job.stage) + ".series", fields);
}

Walls find_walls(Context& context, const SeriesOptions& options, const SeriesInputs& inputs) {
  if (inputs.walls) return *inputs.walls;
  TileOptions tiles = options.tiles;
  tiles.on_progress = {};
  tiles.resume_folder.clear();
  Walls walls{Raster(inputs.city.rows, inputs.city.cols), Raster(inputs.city.rows, inputs.city.cols)};
  stream_walls(context, inputs.city, options.walls, tiles, [&](const Tile& tile, const TileResult& grids) {
    stitch(tile, grids.plane(0), walls.height);
    stitch(tile, grids.plane(1), walls.aspect);
  });
  return walls;
}

void describe_run(const SeriesInputs& inputs, SeriesResult& result) {
  result.rows = inputs.grid.rows;
  result.cols = inputs.grid.cols;
  result.pixel_size_m = inputs.grid.pixel_size();
  result.projection_scale = inputs.projection_scale;
  result.steps = static_cast<int64_t>(inputs.steps.size());
  result.substeps = inputs.radiation.substeps;
  for (const WeatherStep& step : inputs.steps) {
    result.times.push_back(io::civil_text(step.time));
    result.day_steps += step.forcing.day();
  }
  result.latitude_deg = inputs.site.latitude_deg;
  result.longitude_deg = inputs.site.longitude_deg;
  result.utc_offset_h = inputs.site.utc_offset_h;
  result.points = inputs.points;
  result.warnings = inputs.findings.warnings();
}

}  // namespace

SeriesResult run(Context& context, const SeriesOptions& options) { return run(context, options, {}); }

SeriesResult run(Context& context, const SeriesOptions& options, const SeriesArrays& arrays) {
  if (options.folder.empty())
    throw schema_of<SeriesOptions>().error(
        {OptionError::Kind::missing, "out", "no folder for the results", "a folder", ""});
  SeriesResult result;
  const SeriesInputs inputs =
      host_stage(result.host_stages, "read", [&] { return read_series_inputs(options, arrays); });
  describe_run(inputs, result);
  const int64_t rows = band_rows(options, inputs.grid, free_host_bytes(options.tiles));
  SeriesWriter writer(options, inputs, rows);
  const Walls walls = find_walls(context, options, inputs);
  const SeriesTiles tiles(inputs, walls, options.outputs);
  SeriesPointTable points(inputs);

  TileJob job = tiles.job();
  job.host_bytes = writer_bytes(options, inputs.grid, rows);
  const fs::path unfinished = options.folder / ".tiles";
  std::error_code ignored;
  if (!options.resume) fs::remove_all(unfinished, ignored);
  TilePlan plan;
  const auto started = RunClock::now();
  SeriesRun series{context, options, inputs, tiles, writer, points, result, {}, {}, 0, 0, {}};
  {
    std::optional<TileStore> store;
    const auto open_store = [&] {
      job.options = tiles.key_text();
      store.emplace(unfinished, tile_key(context, inputs.city, job));
    };
    if (fs::exists(unfinished, ignored)) open_store();
    plan = plan_tiles(context, inputs.city, job, options.tiles, store ? store->side() : 0);
    result.tiles.side = plan.side;
    result.tiles.tiles = static_cast<int64_t>(plan.tiles.size());
    result.tiles.workers = plan.workers;
    result.tiles.predicted_bytes = static_cast<int64_t>(plan.device_bytes);
    result.tiles.predicted_host_bytes = static_cast<int64_t>(plan.host_bytes);
    series.total = result.tiles.tiles * tiles.parts();
    if (plan.tiles.size() == 1 && rows == inputs.grid.rows) {
      series.run_whole(plan.tiles.front());
    } else {
      if (!store) open_store();
      store->begin(plan.side);
      series.run_tiled(plan, *store);
    }
  }
  host_stage(result.host_stages, "write", [&] {
    writer.finish(result);
    result.points_file = points.write(options.folder / "poi.csv");
    points.fill(result.point_values);
  });
  result.tiles.stitch_seconds = series.stitch_seconds;
  result.tiles.seconds = since(started);
  result.tiles.peak_host_bytes = platform::peak_resident_bytes();
  series.record(job);
  write_file(options.folder / "run.json", json_text(document_of(result), 2) + "\n");
  fs::remove_all(unfinished, ignored);
  return result;
}

}  // namespace lockstep::urban
