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
#include "device/capabilities.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/documents.hpp"
#include "urban/series/arrays.hpp"
#include "urban/series/outputs/point_table.hpp"
#include "urban/series/outputs/writer.hpp"
#include "urban/series/ranks.hpp"
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
  SeriesWriter* writer;  // of rank 0; of others while files of single steps are written
  SeriesPointTable& points;
  const parallel::Group& group;
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
  void compute_tiles(TileJob& job, const fs::path& unfinished, int64_t rows);
  void run_whole(const Tile& tile, const std::function<RunKey()>& key);
  std::vector<size_t> open_tiles(const TilePlan& plan, const TileStore& store);
  void run_tiled(const TilePlan& plan, TileStore& store);
  void assemble(const TilePlan& plan, const TileStore& store);
  void take_rows(StoredTile& stored, size_t step, int64_t begin, int64_t end, int64_t cols,
                 StepPlanes& planes);
  void record(const TileJob& job);
  void record_ranks(const TileJob& job);
  int64_t fallbacks() const;
};

/// The steps of a run of one tile that outlive it.
class KeptSteps {
 public:
  KeptSteps(const SeriesRun& run, const Tile& tile, const std::function<RunKey()>& key)
      : run_(run), layout_(run.tiles.layout(tile)), key_(key), folder_(run.options.folder / ".steps") {
    if (run.options.resume && StepStore::holds_steps(folder_)) store_.emplace(folder_, key_());
    std::error_code ignored;
    if (!run.options.resume) fs::remove_all(folder_, ignored);
    keeping_ = run.options.resume && run.inputs.steps.size() > 1;
    slow_ = capabilities_of(run.context.device()).host_memory;
  }

  /// From the first step on where steps are slow, else once the run has lasted long enough to be missed.
  bool keeps(size_t step) const {
    constexpr double kMissedSeconds = 20;
    const bool is_new = !store_ || step >= store_->kept().behind;
    return keeping_ && is_new && (slow_ || since(begun_) > kMissedSeconds);
  }
  /// Of a step that is about to be kept: before the writer takes its planes.
  void copy(const StepPlanes& planes, const std::vector<float>& points) {
    values_.clear();
    for (const std::vector<float>& plane : planes) values_.insert(values_.end(), plane.begin(), plane.end());
    values_.insert(values_.end(), points.begin(), points.end());
  }
  /// A disk that is full or slow ends the keeping, not the run.
  void keep(size_t step, std::vector<std::byte> state) {
    constexpr double kSlowShare = 0.25;
    try {
      if (!store_) store_.emplace(folder_, key_());
      store_->keep(step, std::exchange(values_, {}), std::move(state));
      if (store_->wait_seconds() < std::max(kSlowShare * since(begun_), 1.0)) return;
      logging::info("{}: steps are not kept any longer, for the disk is slower than they are", kStepStage);
    } catch (const InputError& error) { logging::warning("steps are not kept: {}", error.what()); }
    keeping_ = false;
    remove();
  }
  /// The step behind those that are there; hands them to `sink`.
  size_t take_over(size_t step, std::vector<std::byte>& state, const StepSink& sink) {
    if (!store_ || store_->kept().behind <= step || store_->kept().first != step) return step;
    const StepStore::Kept& kept = store_->kept();
    std::vector<float> values(layout_.floats());
    for (size_t k = step; k < kept.behind; ++k) {
      store_->load(k, values);
      const StepMemory memory = sink.begin(k);
      for (size_t o = 0; o < memory.planes.size(); ++o)
        std::copy_n(layout_.plane(values.data(), o), layout_.pixels(), memory.planes[o]);
      std::copy(values.begin() + static_cast<ptrdiff_t>(memory.planes.size() * layout_.pixels()),
                values.end(), memory.points);
      taking_over_ = true;
      sink.end(k);
      taking_over_ = false;
    }
    logging::info("{}: {} of {} steps are taken over from an earlier run", kStepStage, kept.behind - step,
                  run_.inputs.steps.size());
    state = kept.state;
    return kept.behind;
  }
  bool taking_over() const { return taking_over_; }
  bool has_copy() const { return !values_.empty(); }
  void remove() {
    if (store_) store_->remove();
    store_.reset();
  }

 private:
  const SeriesRun& run_;
  const StepLayout layout_;
  const std::function<RunKey()>& key_;
  const fs::path folder_;
  const RunClock::time_point begun_ = RunClock::now();
  std::optional<StepStore> store_;
  std::vector<float> values_;
  bool keeping_ = false, slow_ = false, taking_over_ = false;
};

/// One tile that is the raster: its steps go to the files as they come.
void SeriesRun::run_whole(const Tile& tile, const std::function<RunKey()>& key) {
  const auto begin = RunClock::now();
  const StepLayout layout = tiles.layout(tile);
  KeptSteps kept(*this, tile, key);
  std::vector<float> at_points(layout.points().size() * kPointValues);
  StepPlanes planes;  // of the step that has begun
  StepSink sink;
  sink.begin = [&](size_t) {
    if (planes.empty()) planes = writer->begin();
    StepMemory memory{{}, at_points.data()};
    for (std::vector<float>& plane : planes) memory.planes.push_back(plane.data());
    return memory;
  };
  sink.end = [&](size_t k) {
    for (size_t p = 0; p < layout.points().size(); ++p)
      points.take(layout.points()[p], k, at_points.data() + p * kPointValues);
    if (!kept.taking_over() && kept.keeps(k)) kept.copy(planes, at_points);
    writer->end(k, std::exchange(planes, {}));
  };
  sink.keeps = [&](size_t) { return kept.has_copy(); };
  sink.keep = [&](size_t k, std::vector<std::byte> state) { kept.keep(k, std::move(state)); };
  sink.take_over = [&](size_t k, std::vector<std::byte>& state) { return kept.take_over(k, state, sink); };
  tiles.compute(context, tile, nullptr, sink, [this](int parts) { advance(parts); }, &clock);
  result.tiles.queue_depth_peak = 1;
  result.tiles.tile_seconds.push_back(since(begin));
  result.tiles.turnaround_seconds.push_back(since(begin));
}

/// Bytes of a tile's series.
int64_t bytes_of(const SeriesRun& run, const Tile& tile) {
  return static_cast<int64_t>(run.tiles.layout(tile).floats() * sizeof(float) * run.inputs.steps.size());
}

/// Tiles that an earlier run did not leave.
std::vector<size_t> SeriesRun::open_tiles(const TilePlan& plan, const TileStore& store) {
  std::vector<size_t> open;
  for (size_t number = 0; number < plan.tiles.size(); ++number) {
    const Tile& tile = plan.tiles[number];
    const platform::MappedFile series(store.file(tile), bytes_of(*this, tile));
    if (store.load(tile, {series.data(), static_cast<size_t>(bytes_of(*this, tile))})) {
      ++result.tiles.resumed;
      advance(tiles.parts());
    } else {
      open.push_back(number);
    }
  }
  if (result.tiles.resumed > 0)
    logging::info("{}: {} of {} tiles are taken over from an earlier run", kStepStage, result.tiles.resumed,
                  result.tiles.tiles);
  return open;
}

/// Several tiles: each keeps its series in a file until all are there.
void SeriesRun::run_tiled(const TilePlan& plan, TileStore& store) {
  std::mutex reporting;
  const std::vector<size_t> open =
      parallel::numbers_of_lead(group, group.leads() ? open_tiles(plan, store) : std::vector<size_t>());
  parallel::WorkQueue queue(group, static_cast<int64_t>(open.size()), [this](int parts) { advance(parts); });
  const auto next = [&]() -> std::optional<size_t> {
    const auto k = queue.next();
    return k ? std::optional(open[static_cast<size_t>(*k)]) : std::nullopt;
  };
  result.tiles.queue_depth_peak = for_each_tile(next, plan.workers, [&](size_t number) {
    const Tile& tile = plan.tiles[number];
    const auto begin = RunClock::now();
    const StepLayout layout = tiles.layout(tile);
    const platform::MappedFile series(store.file(tile), bytes_of(*this, tile));
    float* const values = reinterpret_cast<float*>(series.data());
    const StepSink sink{[&](size_t k) { return layout.memory(values + k * layout.floats()); }, [](size_t) {}};
    TileStream own;
    tiles.compute(
        context, tile, plan.workers > 1 ? &own : nullptr, sink, [&](int parts) { queue.report(parts); },
        &clock);
    const double seconds = since(begin);
    store.save(tile, {series.data(), static_cast<size_t>(bytes_of(*this, tile))});
    const std::lock_guard lock(reporting);
    result.tiles.tile_seconds.push_back(seconds);
    result.tiles.turnaround_seconds.push_back(since(begin));
  });
  queue.finish();
}

/// Plans the tiles, takes over stored ones, computes the others, and puts all together.
void SeriesRun::compute_tiles(TileJob& job, const fs::path& unfinished, int64_t rows) {
  std::optional<TileStore> store;
  std::string key;
  const auto find_key = [&] {
    if (!key.empty()) return;
    job.options = tiles.key_text();
    key = tile_key(context, inputs.city, job);
  };
  const auto open_store = [&] {
    find_key();
    store.emplace(unfinished, key, group.leads());
  };
  std::error_code ignored;
  if (group.leads() && (group.size() > 1 || fs::exists(unfinished, ignored))) open_store();
  if (group.size() > 1) {
    find_key();
    group.expect_same("inputs and options", fmt::format("{} in {}", key, options.folder.string()));
  }
  const int64_t kept =
      parallel::numbers_of_lead(group, std::vector{store ? store->side() : int64_t{0}}).front();
  const TilePlan plan = plan_for_ranks(context, inputs.city, job, options.tiles, kept, group);
  result.tiles.side = plan.side;
  result.tiles.tiles = static_cast<int64_t>(plan.tiles.size());
  result.tiles.workers = plan.workers;
  result.tiles.predicted_bytes = static_cast<int64_t>(plan.device_bytes);
  result.tiles.predicted_host_bytes = static_cast<int64_t>(plan.host_bytes);
  total = result.tiles.tiles * tiles.parts();
  if (group.size() == 1 && plan.tiles.size() == 1 && rows == inputs.grid.rows)
    return run_whole(plan.tiles.front(), [&] {
      RunKey own = tiles.key();
      job.options.clear();
      own.emplace_back("the city, the program's version, device or numerics",
                       tile_key(context, inputs.city, job));
      return own;
    });
  if (!store && group.leads()) open_store();
  if (store) store->begin(plan.side);
  group.barrier();
  if (!store) open_store();
  if (store->side() != plan.side)
    throw parallel::GroupError(fmt::format("rank {} does not see what rank 0 wrote", group.rank()),
                               unfinished.string(), "a folder that all ranks share");
  run_tiled(plan, *store);
  std::optional<SeriesWriter> own;  // of the files of single steps
  if (!group.leads() && SeriesWriter::has_files(options))
    writer = &own.emplace(options, inputs, rows, FileShare{group.rank(), group.size()});
  if (writer) assemble(plan, *store);
  if (own) own->wait();
  record_ranks(job);
  if (own) writer = nullptr;
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
  for (int64_t begin = 0; begin < inputs.city.rows; begin += writer->rows()) {
    const int64_t end = std::min(begin + writer->rows(), inputs.city.rows);
    std::vector<StoredTile> crossed;
    for (const Tile& tile : plan.tiles)
      if (tile.row < end && tile.row + tile.rows > begin)
        crossed.emplace_back(tile, tiles.layout(tile), store);
    for (size_t k = 0; k < inputs.steps.size(); ++k) {
      if (!writer->needs(k)) continue;
      StepPlanes planes = writer->begin();
      const auto started = RunClock::now();
      for (StoredTile& stored : crossed) take_rows(stored, k, begin, end, cols, planes);
      stitch_seconds += since(started);
      writer->end(k, std::move(planes), begin);
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

int64_t SeriesRun::fallbacks() const {
  int64_t count = 0;
  for (const StageRecord& stage : context.stages())
    if (stage.stage.starts_with("urban.")) count += stage.fallbacks;
  return count;
}

/// A line of telemetry for each rank.
void SeriesRun::record_ranks(const TileJob& job) {
  if (group.size() == 1) return;
  const std::vector<double>& seconds = result.tiles.tile_seconds;
  const RankWork mine{static_cast<int64_t>(seconds.size()), fallbacks(), writer ? writer->files() : 0,
                      std::accumulate(seconds.begin(), seconds.end(), 0.0)};
  const std::vector<RankWork> all = gather_work(group, mine);
  for (size_t r = 0; group.leads() && r < all.size(); ++r)
    Telemetry::global().event(std::string(job.stage) + ".rank", {{"rank", static_cast<int64_t>(r)},
                                                                 {"tiles", all[r].tiles},
                                                                 {"tile_seconds", all[r].seconds},
                                                                 {"files", all[r].files},
                                                                 {"gpu_fallback_count", all[r].fallbacks}});
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
  m.write_ms = writer->write_seconds() * 1e3;
  m.wait_ms = writer->wait_seconds() * 1e3;
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
                   {"gpu_fallback_count", fallbacks()},
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
  return walls_for(context, inputs.city, options.walls, options.tiles);
}

void describe_run(const SeriesInputs& inputs, SeriesResult& result) {
  result.rows = inputs.grid.rows;
  result.cols = inputs.grid.cols;
  result.pixel_size_m = inputs.grid.pixel_size();
  result.projection_scale = inputs.projection_scale;
  result.steps = static_cast<int64_t>(inputs.steps.size());
  result.step_min = inputs.weather.step_min;
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

SeriesResult run(Context& context, const SeriesOptions& options) {
  return run(context, options, SeriesArrays{}, parallel::Group());
}
SeriesResult run(Context& context, const SeriesOptions& options, const SeriesArrays& arrays) {
  return run(context, options, arrays, parallel::Group());
}
SeriesResult run(Context& context, const SeriesOptions& options, const parallel::Group& group) {
  return run(context, options, SeriesArrays{}, group);
}

SeriesResult run(Context& context, const SeriesOptions& options, const SeriesArrays& arrays,
                 const parallel::Group& group) {
  if (options.folder.empty())
    throw schema_of<SeriesOptions>().error(
        {OptionError::Kind::missing, "out", "no folder for the results", "a folder", ""});
  SeriesResult result;
  const SeriesInputs inputs =
      host_stage(result.host_stages, "read", [&] { return read_series_inputs(options, arrays); });
  describe_run(inputs, result);
  check_summary(options, inputs);
  const int64_t rows = band_rows(options, inputs.grid, free_host_bytes(options.tiles));
  std::optional<SeriesWriter> writer;
  if (group.leads()) writer.emplace(options, inputs, rows, FileShare{0, group.size()});
  const Walls walls = find_walls(context, options, inputs);
  const SeriesTiles tiles(inputs, walls, options.outputs);
  SeriesPointTable points(inputs);

  TileJob job = tiles.job();
  job.host_bytes = writer ? writer_bytes(options, inputs.grid, rows) : 0;
  const fs::path unfinished = options.folder / ".tiles";
  std::error_code ignored;
  if (group.leads() && !options.resume) fs::remove_all(unfinished, ignored);
  const auto started = RunClock::now();
  SeriesRun series{context, options, inputs, tiles, writer ? &*writer : nullptr, points, group, result, {},
                   {},      0,       0,      {}};
  series.compute_tiles(job, unfinished, rows);
  if (!group.leads()) return {};
  host_stage(result.host_stages, "write", [&] {
    writer->finish(result);
    result.points_file = points.write(options.folder / "poi.csv");
    points.fill(result.point_values);
  });
  result.tiles.stitch_seconds = series.stitch_seconds;
  result.tiles.seconds = since(started);
  result.tiles.peak_host_bytes = platform::peak_resident_bytes();
  series.record(job);
  nlohmann::ordered_json record = document_of(result);
  record["summaries"] = record["outputs"];  // the record of the program lists files as outputs
  write_file(options.folder / "run.json", json_text(record, 2) + "\n");
  for (const fs::path& folder : {unfinished, options.folder / ".steps"}) fs::remove_all(folder, ignored);
  return result;
}

}  // namespace lockstep::urban
