#include "urban/tiles/run_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <new>
#include <numeric>
#include <sstream>
#include <thread>
#include <utility>

#include "core/numbers/statistics.hpp"
#include "core/platform/process.hpp"
#include "core/platform/system.hpp"
#include "core/reports/fields.hpp"
#include "core/reports/log.hpp"
#include "core/reports/telemetry.hpp"
#include "device/capabilities.hpp"
#include "lockstep/error.hpp"
#include "urban/rays/ray_table.hpp"
#include "urban/tiles/tile_store.hpp"

namespace lockstep::urban {
namespace {

/// Must be raised with every change of a kernel, or of the code around it, that changes a result's bits.
constexpr int kAlgorithmVersion = 4;

using Clock = std::chrono::steady_clock;
double clock_of(const TileJob& job) {
  return job.clock ? job.clock() : std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A large tile that is computed sooner than it is hashed and written (at about this rate) is not kept.
constexpr double kKeptBytesPerSecond = 1e9;
constexpr size_t kKeptAnyway = size_t{16} << 20;
bool worth_keeping(double seconds, size_t bytes) {
  return bytes <= kKeptAnyway || seconds * kKeptBytesPerSecond > static_cast<double>(bytes);
}

/// Devices of one family give the same bits.
std::string_view family(const Device& device) {
  const bool ieee = capabilities_of(device).ieee && device.numerics() == Numerics::exact;
  return ieee ? "ieee" : name(device.info().kind);
}

/// Buffers of an earlier stage stay resident in a CPU's pool and are reused if their sizes are the same.
uint64_t taken_over(const Device& device, const City& city, const TileJob& job, TileBudget budget) {
  if (!capabilities_of(device).host_memory) return 0;
  const DeviceCounters counters = device.counters();
  budget.cost = job.taken_over;
  return std::min(static_cast<uint64_t>(counters.peak_bytes - counters.allocated_bytes),
                  tile_device_bytes(std::max(city.rows, city.cols), city.rows, city.cols, job.reach, budget));
}

TilePlan plan_on(const Device& device, const City& city, const TileJob& job, const TileOptions& options,
                 int64_t kept_side) {
  const Limits& limits = device.info().limits;
  constexpr uint64_t index_limit = uint64_t{1} << 33;  // kernels index padded windows of f32 with i32
  TileBudget budget;
  budget.cost = job.cost;
  if (city.windows) budget.cost.host_window_bytes = 4 * (city.has_vegetation() ? 3 : 1);
  budget.device_is_host = capabilities_of(device).host_memory;
  budget.device_bytes = static_cast<uint64_t>(std::max<int64_t>(0, device.memory().free_bytes));
  const uint64_t host = free_host_bytes(options);
  budget.host_bytes = host - std::min(host, job.host_bytes);
  budget.max_buffer_bytes = std::min<uint64_t>(
      {index_limit, static_cast<uint64_t>(limits.buffer_bytes), static_cast<uint64_t>(limits.binding_bytes)});
  budget.pad = kPad;
  budget.in_flight = options.workers > 0 ? options.workers : budget.device_is_host ? 1 : 2;

  TilePlan plan;
  plan.side = tile_side(city.rows, city.cols, job.reach, budget, options.side, kept_side);
  plan.tiles = make_tiles(city.rows, city.cols, plan.side, job.reach);
  plan.workers = static_cast<int>(std::min<size_t>(static_cast<size_t>(budget.in_flight), plan.tiles.size()));
  const uint64_t workers = static_cast<uint64_t>(plan.workers);
  plan.device_bytes = workers * tile_device_bytes(plan.side, city.rows, city.cols, job.reach, budget);
  plan.host_bytes = static_cast<uint64_t>(platform::resident_bytes()) + job.host_bytes +
                    workers * tile_host_bytes(plan.side, city.rows, city.cols, job.reach, budget);
  if (plan.tiles.size() == 1) plan.host_bytes -= taken_over(device, city, job, budget);
  return plan;
}

void mask_missing(const City& city, const Tile& tile, const TileResult& result) {
  if (city.missing == 0) return;
  const std::span<const float> heights = city.dsm.as<float>();
  for (int64_t row = 0; row < tile.rows; ++row)
    for (int64_t col = 0; col < tile.cols; ++col) {
      if (heights[static_cast<size_t>((tile.row + row) * city.cols + tile.col + col)] != kNoHeight) continue;
      for (size_t k = 0; k < result.planes(); ++k)
        result.plane(k)[row * tile.cols + col] = std::numeric_limits<float>::quiet_NaN();
    }
}

/// The tile within its window.
Tile within_window(Tile tile) {
  tile.row -= std::exchange(tile.window_row, 0);
  tile.col -= std::exchange(tile.window_col, 0);
  return tile;
}

/// Calls `work` with the city and the tile in it: of a city that is not held with the tile's window.
template <class Work>
TileResult with_window(const City& city, const Tile& tile, const Work& work) {
  if (!city.windows) return work(city, tile);
  return work(city.windows->read(tile.window_row, tile.window_col, tile.window_rows, tile.window_cols),
              within_window(tile));
}

/// One attempt at a tile on a device.
TileResult compute_on(const Device& device, const City& city, const TileJob& job, const Tile& tile,
                      bool own_stream, const Advance& advance) {
  TileResult core(tile, job.planes, job.words);
  const Stream stream = own_stream ? device.stream() : Stream{};
  job.compute(device, stream, city, tile, core, advance);
  mask_missing(city, tile, core);
  return core;
}

double mean(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

void record(const Context& context, const City& city, const TileJob& job, const TileReport& report) {
  Telemetry& telemetry = Telemetry::global();
  if (!telemetry.enabled()) return;
  StageRecord stage;
  for (const StageRecord& r : context.stages())
    if (r.stage == job.stage) stage = r;
  const bool gpu = stage.device.starts_with("cuda") || stage.device.starts_with("webgpu");
  const auto named = [&](std::string_view name) { return std::string(job.field_prefix).append(name); };
  Fields fields = {{named("tile_wall_time_s"), mean(report.tile_seconds)},
                   {named("tile_wall_time_p95_s"), percentile(report.tile_seconds, 0.95)},
                   {named("stitch_copy_time_ms"), report.stitch_seconds * 1e3},
                   {named("gpu_fallback_count"), stage.fallbacks},
                   {"tile_turnaround_ms", mean(report.turnaround_seconds) * 1e3},
                   {"tile_turnaround_p95_ms", percentile(report.turnaround_seconds, 0.95) * 1e3},
                   {"gpu_stage_time_ms", gpu ? stage.seconds * 1e3 : 0.0},
                   {"queue_depth_peak", report.queue_depth_peak},
                   {"in_flight_limit", report.workers},
                   {"tile_side", report.side},
                   {"tiles", report.tiles},
                   {"tiles_resumed", report.resumed},
                   {"read_by_windows", city.windows != nullptr},
                   {"predicted_bytes", report.predicted_bytes},
                   {"predicted_host_bytes", report.predicted_host_bytes},
                   {"peak_host_bytes", report.peak_host_bytes},
                   {"bytes_to_device", stage.bytes_to_device},
                   {"bytes_from_device", stage.bytes_from_device},
                   {"gpu_fallback_count", stage.fallbacks}};
  if (job.patches > 0) {
    const double done = static_cast<double>(job.patches) * static_cast<double>(report.tile_seconds.size());
    fields.push_back({named("patch_progress_rate"), report.seconds > 0 ? done / report.seconds : 0.0});
  }
  telemetry.event(std::string(job.stage) + ".tiles", fields);
}

}  // namespace

/// Large results are in huge pages, because each tile touches all of its pages for the first time.
TileResult::Data TileResult::allocate(size_t count) {
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t bytes = std::max<size_t>(count, 1) * sizeof(uint32_t), whole = bytes / kHugePage * kHugePage;
  void* const data = whole ? std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage)
                           : std::malloc(bytes);
  if (!data) throw std::bad_alloc();
  if (whole) platform::prefer_huge_pages(data, whole);
  return Data(static_cast<uint32_t*>(data));
}

uint64_t free_host_bytes(const TileOptions& options) {
  if (options.memory_bytes > 0) {
    const int64_t held = platform::resident_bytes();
    if (held >= options.memory_bytes)
      throw InputError(
          fmt::format("{:.1f} MiB of host memory", static_cast<double>(options.memory_bytes) / 0x1p20),
          "tiles",
          fmt::format("more than the {:.1f} MiB that the program uses already",
                      static_cast<double>(held) / 0x1p20));
    return static_cast<uint64_t>(options.memory_bytes - held);
  }
  return static_cast<uint64_t>(kUsableMemory * static_cast<double>(platform::system_memory().free_bytes));
}

std::array<std::string, 3> content_hashes(const City& city) {
  std::array<std::string, 3> hashes;
  if (city.windows) {
    std::istringstream(city.windows->hashes()) >> hashes[0] >> hashes[1] >> hashes[2];
    return hashes;
  }
  const Array* const grids[] = {&city.dsm, &city.canopy, &city.trunk};
  for (size_t k = 0; k < hashes.size(); ++k) hashes[k] = to_hex(hash_in_parts(grids[k]->raw()));
  return hashes;
}

std::string tile_key(const Context& context, const City& city, const TileJob& job) {
  std::string text = fmt::format("{} of lockstep {} version {}, {} numerics {}, {} x {} pixels of {} m: {}",
                                 job.stage, LOCKSTEP_VERSION, kAlgorithmVersion, family(context.device()),
                                 context.numerics() == Numerics::exact ? "exact" : "fast", city.rows,
                                 city.cols, city.pixel_size_m, job.options);
  for (const std::string& hash : content_hashes(city)) text += " " + hash;
  return text;
}

TilePlan plan_tiles(Context& context, const City& city, const TileJob& job, const TileOptions& options,
                    int64_t kept_side) {
  if (options.workers < 0)
    throw InputError(fmt::format("{} tile workers", options.workers), "tiles", "none or a positive number");
  if (options.memory_bytes < 0)
    throw InputError(fmt::format("{} bytes of memory", options.memory_bytes), "tiles", "a positive number");
  const Device device = context.device();
  const auto plan = [&](const Device& on) { return plan_on(on, city, job, options, kept_side); };
  try {
    return plan(device);
  } catch (const UnsupportedError&) {
    if (capabilities_of(device).host_memory) throw;
  }
  return context.stage(job.stage, plan);
}

int for_each_tile(const std::vector<size_t>& numbers, int workers, const std::function<void(size_t)>& run) {
  std::atomic<size_t> begun{0};
  const auto next = [&]() -> std::optional<size_t> {
    const size_t k = begun++;
    return k < numbers.size() ? std::optional(numbers[k]) : std::nullopt;
  };
  return for_each_tile(next, workers, run);
}

int for_each_tile(const std::function<std::optional<size_t>()>& next, int workers,
                  const std::function<void(size_t)>& run) {
  std::atomic<bool> stopped{false};
  std::atomic<int> in_flight{0}, peak{0};
  std::mutex failing;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      while (!stopped) {
        const std::optional<size_t> number = next();
        if (!number) return;
        const int now = ++in_flight;
        for (int seen = peak; seen < now && !peak.compare_exchange_weak(seen, now);) {}
        run(*number);
        --in_flight;
      }
    } catch (...) {
      stopped = true;
      const std::lock_guard lock(failing);
      if (!failure) failure = std::current_exception();
    }
  };
  if (workers <= 1) {
    work();
  } else {
    std::vector<std::jthread> threads;
    for (int w = 0; w < workers; ++w) threads.emplace_back(work);
  }
  if (failure) std::rethrow_exception(failure);
  return peak;
}

TileReport run_tiles(Context& context, const City& city, const TileJob& job, const TileOptions& options,
                     const TileSink& sink) {
  const auto start = Clock::now();
  TileStore store(options.resume_folder,
                  options.resume_folder.empty() ? std::string() : tile_key(context, city, job));
  if (store.holds_others())
    logging::info("{}: tiles of other inputs, options or versions in {} are not taken over", job.stage,
                  options.resume_folder.string());
  const TilePlan plan = plan_tiles(context, city, job, options, store.side());
  if (store.side() != 0 && store.side() != plan.side)
    logging::info(
        "{}: tiles of {} pixels are not taken over, for they do not fit or another side was requested",
        job.stage, store.side());
  store.begin(plan.side);

  TileReport report;
  report.side = plan.side;
  report.tiles = static_cast<int64_t>(plan.tiles.size());
  report.workers = plan.workers;
  report.predicted_bytes = static_cast<int64_t>(plan.device_bytes);
  report.predicted_host_bytes = static_cast<int64_t>(plan.host_bytes);
  const int64_t total = report.tiles * job.parts;
  std::atomic<int64_t> done{0};
  const auto advance = [&](int64_t parts) {
    const int64_t now = done += parts;
    if (options.on_progress) options.on_progress(std::min(now, total), total);
  };
  std::mutex delivering;
  const auto deliver = [&](const Tile& tile, const TileResult& result) {
    const std::lock_guard lock(delivering);
    const auto begin = Clock::now();
    sink(tile, result);
    report.stitch_seconds += seconds_since(begin);
  };

  std::vector<size_t> open;
  for (size_t k = 0; k < plan.tiles.size(); ++k) {
    const Tile& tile = plan.tiles[k];
    const TileResult stored(tile, job.planes, job.words);
    if (!store.load(tile, stored.bytes())) {
      open.push_back(k);
      continue;
    }
    deliver(tile, stored);
    ++report.resumed;
    advance(job.parts);
  }
  if (report.resumed > 0)
    logging::info("{}: {} of {} tiles are taken over from an earlier run", job.stage, report.resumed,
                  report.tiles);
  report.queue_depth_peak = for_each_tile(open, plan.workers, [&](size_t number) {
    const Tile& tile = plan.tiles[number];
    const auto begin = Clock::now();
    const double computing = clock_of(job);
    int64_t counted = 0;
    const auto compute = [&](const City& part, const Tile& within) {
      return context.stage(job.stage, [&](const Device& device) {
        advance(-counted);  // a fallback starts the tile again
        counted = 0;
        return compute_on(device, part, job, within, plan.workers > 1, [&](int parts) {
          counted += parts;
          advance(parts);
        });
      });
    };
    const TileResult result = with_window(city, tile, compute);
    const double seconds = seconds_since(begin);
    if (worth_keeping(clock_of(job) - computing, result.bytes().size())) store.save(tile, result.bytes());
    deliver(tile, result);
    advance(job.parts - counted);
    const std::lock_guard lock(delivering);
    report.tile_seconds.push_back(seconds);
    report.turnaround_seconds.push_back(seconds_since(begin));
  });
  report.seconds = seconds_since(start);
  report.peak_host_bytes = platform::peak_resident_bytes();
  record(context, city, job, report);
  return report;
}

void stitch(const Tile& tile, const float* core, Raster& whole) {
  stitch(tile, core, whole.pixels().data(), whole.cols());
}
void stitch(const Tile& tile, const float* core, float* whole, int64_t cols) {
  for (int64_t row = 0; row < tile.rows; ++row)
    std::copy_n(core + row * tile.cols, tile.cols, whole + (tile.row + row) * cols + tile.col);
}

}  // namespace lockstep::urban
