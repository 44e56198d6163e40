// Sky view factors: tiles through the stage "urban.svf".
#include "urban/sky/sky.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>

#include "core/fields.hpp"
#include "core/hash.hpp"
#include "core/telemetry.hpp"
#include "lockstep/error.hpp"
#include "urban/rays/kernels.hpp"
#include "urban/tiles/tile_runner.hpp"
#include "urban/tiles/tile_store.hpp"

namespace lockstep::urban {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Names the inputs and every option that the result depends on.
std::string key_of(const City& city, const SkyOptions& options) {
  std::string text =
      fmt::format("{} {} {} {} {} {} {} {}", city.rows, city.cols, city.pixel_size_m,
                  static_cast<int>(options.patches), static_cast<int>(options.zenith),
                  static_cast<int>(options.edges), options.rays.max_reach_m, options.keep_states);
  for (const std::vector<float>* grid : {&city.dsm, &city.canopy, &city.trunk})
    text += " " + to_hex(hash128(std::as_bytes(std::span(*grid))));
  return to_hex(hash128(text));
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

void record(Context& context, const SkyPlan& plan, const TileReport& report) {
  Telemetry& telemetry = Telemetry::global();
  if (!telemetry.enabled()) return;
  const std::vector<double>& tiles = report.tile_seconds;
  const double sum = std::accumulate(tiles.begin(), tiles.end(), 0.0);
  const double mean = tiles.empty() ? 0 : sum / static_cast<double>(tiles.size());
  StageRecord stage;
  for (const StageRecord& r : context.stages())
    if (r.stage == kSkyStage) stage = r;
  const auto fallbacks = context.fallbacks();
  const auto fallen = fallbacks.find(kSkyStage);
  const int64_t fallback_count = fallen == fallbacks.end() ? 0 : fallen->second;
  const double patches_done = static_cast<double>(plan.patches()) * static_cast<double>(tiles.size());
  telemetry.event("urban.svf.tiles",
                  {{"svf_tile_wall_time_s", mean},
                   {"svf_tile_wall_time_p95_s", percentile(tiles, 0.95)},
                   {"svf_patch_progress_rate", report.seconds > 0 ? patches_done / report.seconds : 0.0},
                   {"svf_stitch_copy_time_ms", report.stitch_seconds * 1e3},
                   {"svf_gpu_fallback_count", fallback_count},
                   {"tile_turnaround_ms", mean * 1e3},
                   {"tile_turnaround_p95_ms", percentile(tiles, 0.95) * 1e3},
                   {"gpu_stage_time_ms", stage.seconds * 1e3},
                   {"queue_depth_peak", report.queue_depth_peak},
                   {"in_flight_limit", report.workers},
                   {"tile_side", report.side},
                   {"tiles", report.tiles},
                   {"tiles_resumed", report.resumed},
                   {"predicted_bytes", report.predicted_bytes},
                   {"bytes_to_device", stage.bytes_to_device},
                   {"bytes_from_device", stage.bytes_from_device},
                   {"gpu_fallback_count", fallback_count}});
}

/// A tile's result as it is stored: 15 grids, then the states if kept. Not initialised, for it is written
/// whole.
class Packed {
 public:
  Packed(const Tile& tile, int state_words)
      : pixels_(static_cast<size_t>(tile.core_pixels())),
        count_(pixels_ * static_cast<size_t>(kSkyViewGrids + state_words)),
        data_(std::make_unique_for_overwrite<uint32_t[]>(count_)) {}
  float* grid(size_t g) const { return reinterpret_cast<float*>(data_.get()) + g * pixels_; }
  uint32_t* states() const { return data_.get() + kSkyViewGrids * pixels_; }
  std::span<std::byte> data() const { return std::as_writable_bytes(std::span(data_.get(), count_)); }

 private:
  size_t pixels_, count_;
  std::unique_ptr<uint32_t[]> data_;
};

/// What the device does not give: without plants the last ten grids are 1; missing pixels are NaN.
void complete(const City& city, const Tile& tile, const Packed& result) {
  const size_t pixels = static_cast<size_t>(tile.core_pixels());
  if (!city.has_vegetation()) std::fill(result.grid(kSectors), result.grid(kSkyViewGrids), 1.0f);
  if (city.missing == 0) return;
  for (size_t p = 0; p < pixels; ++p) {
    const int64_t row = static_cast<int64_t>(p) / tile.cols, col = static_cast<int64_t>(p) % tile.cols;
    if (!city.is_missing((tile.row + row) * city.cols + tile.col + col)) continue;
    for (size_t g = 0; g < kSkyViewGrids; ++g) result.grid(g)[p] = kNan;
  }
}

}  // namespace

SkyBuffers allocate_sky(const Device& device, const Stream& stream, const SkyPlan& plan, const Scene& scene) {
  const Tile& t = scene.tile;
  return {device.allocate<u32>({plan.words(), t.rows, t.cols}),
          device.allocate<f32>({scene.plants ? kSkyViewGrids : kSectors, t.rows, t.cols}),
          upload_on(device, stream, pack_rays(plan.rays, scene.shape, plan.pixel_size_m)),
          upload_on(device, stream, plan.view_table)};
}

void cast_sky(const Device& device, const Stream& stream, const SkyPlan& plan, const Scene& s,
              const SkyBuffers& b, int first_word, int words) {
  const Buffer states = b.states.rows(first_word, words);
  const Extent extent{words, s.tile.rows, s.tile.cols};
  const int first = 16 * first_word, patches = plan.patches();
  const int64_t row = s.row_offset(), col = s.col_offset(), pitch = s.shape.pitch;
  const Kernel& kernel = kernels::sky_states(s.plants);
  if (s.plants)
    device.launch_on(stream, kernel, extent, s.dsm, s.near_dsm, s.far, s.canopy, s.trunk, s.near_canopy,
                     b.rays, states, first, patches, row, col, pitch, s.highest);
  else
    device.launch_on(stream, kernel, extent, s.dsm, s.near_dsm, s.far, b.rays, states, first, patches, row,
                     col, pitch, s.highest);
}

void view_sky(const Device& device, const Stream& stream, const SkyPlan& plan, const Scene& s,
              const SkyBuffers& b) {
  if (s.plants)
    device.launch_on(stream, kernels::sky_view(true), s.core(), b.states, b.view_table, s.trunk, b.grids,
                     plan.bands(), s.row_offset(), s.col_offset(), s.shape.pitch);
  else
    device.launch_on(stream, kernels::sky_view(false), s.core(), b.states, b.view_table, b.grids,
                     plan.bands());
}

namespace {

Packed compute_tile(const Device& device, bool own_stream, const City& city, const SkyPlan& plan,
                    const Tile& tile, bool keep_states, const std::function<void(int)>& words_done) {
  const Stream stream = own_stream ? device.stream() : Stream{};
  const Scene scene = upload_scene(device, stream, city, tile);
  build_maxima(device, stream, scene);
  const SkyBuffers buffers = allocate_sky(device, stream, plan, scene);
  // The CPU works at once: a launch a word gives progress. A GPU gets everything in one launch.
  const bool stepwise = device.info().kind == DeviceKind::cpu || device.info().kind == DeviceKind::interp;
  const int step = stepwise ? 1 : plan.words();
  for (int word = 0; word < plan.words(); word += step) {
    cast_sky(device, stream, plan, scene, buffers, word, step);
    words_done(step);
  }
  view_sky(device, stream, plan, scene, buffers);
  Packed result(tile, keep_states ? plan.words() : 0);
  device.read(buffers.grids, result.grid(0), buffers.grids.bytes(), stream);
  if (keep_states) device.read(buffers.states, result.states(), buffers.states.bytes(), stream);
  complete(city, tile, result);
  return result;
}

}  // namespace

void run_sky(Context& context, const City& city, const SkyOptions& options, const TileOptions& tiling,
             const std::function<void(const Tile&, const float*, const uint32_t*)>& sink, TileReport* out) {
  const auto start = Clock::now();
  const SkyPlan plan = plan_sky(city, options);
  TileStore store(tiling.resume_folder, tiling.resume_folder.empty() ? std::string() : key_of(city, options));
  const int words = plan.words();
  const TileCost cost{
      scene_bytes(city.has_vegetation()),
      static_cast<uint64_t>(words) * 4 + (city.has_vegetation() ? kSkyViewGrids : kSectors) * 4ull,
      std::max<uint64_t>(static_cast<uint64_t>(words) * 4, kSkyViewGrids * 4ull)};
  const TilePlan tiles = plan_tiles(context, kSkyStage, city, plan.reach, cost, tiling, store.side());
  store.begin(tiles.side);

  TileReport report;
  report.side = tiles.side;
  report.tiles = static_cast<int64_t>(tiles.tiles.size());
  report.predicted_bytes = static_cast<int64_t>(tiles.predicted_bytes);
  const int64_t total = report.tiles * words;
  std::atomic<int64_t> done{0};
  const auto advance = [&](int64_t parts) {
    const int64_t now = done += parts;
    if (tiling.on_progress) tiling.on_progress(std::min(now, total), total);
  };
  std::mutex delivering;
  const auto deliver = [&](const Tile& tile, const Packed& result) {
    const std::lock_guard lock(delivering);
    const auto begin = Clock::now();
    sink(tile, result.grid(0), options.keep_states ? result.states() : nullptr);
    report.stitch_seconds += seconds_since(begin);
  };

  std::vector<size_t> open;
  const int stored_words = options.keep_states ? words : 0;
  for (size_t k = 0; k < tiles.tiles.size(); ++k) {
    const Tile& tile = tiles.tiles[k];
    const Packed stored(tile, stored_words);
    if (!store.load(tile, stored.data())) {
      open.push_back(k);
      continue;
    }
    deliver(tile, stored);
    ++report.resumed;
    advance(words);
  }
  for_each_tile(
      open, tiles.workers,
      [&](size_t number) {
        const Tile& tile = tiles.tiles[number];
        const auto begin = Clock::now();
        int64_t counted = 0;
        const Packed result = context.stage(kSkyStage, [&](const Device& device) {
          advance(-counted);  // a fallback starts the tile again
          counted = 0;
          return compute_tile(device, tiles.workers > 1, city, plan, tile, options.keep_states,
                              [&](int parts) {
                                counted += parts;
                                advance(parts);
                              });
        });
        store.save(tile, result.data());
        const double seconds = seconds_since(begin);
        deliver(tile, result);
        const std::lock_guard lock(delivering);
        report.tile_seconds.push_back(seconds);
      },
      report);
  report.seconds = seconds_since(start);
  record(context, plan, report);
  if (out) *out = std::move(report);
}

const Raster& SkyViewFactors::operator[](std::string_view name) const {
  for (size_t g = 0; g < kSkyViewGrids; ++g)
    if (kSkyViewNames[g] == name) return grids[g];
  throw InputError(fmt::format("no grid '{}'", name), "sky view factors",
                   "a name such as svf, svf_east, svf_veg");
}

void stream_sky_view_factors(Context& context, const CityInput& input, const SkyOptions& options,
                             const TileOptions& tiles, const std::function<void(const SkyTile&)>& sink,
                             TileReport* report) {
  const City city = prepare_city(input);
  run_sky(
      context, city, options, tiles,
      [&](const Tile& tile, const float* grids, const uint32_t* states) {
        SkyTile part{tile.row, tile.col, tile.rows, tile.cols, {}, states};
        for (size_t g = 0; g < kSkyViewGrids; ++g)
          part.grids[g] = grids + g * static_cast<size_t>(tile.core_pixels());
        sink(part);
      },
      report);
}

SkyViewFactors compute_sky_view_factors(Context& context, const CityInput& input, const SkyOptions& options,
                                        const TileOptions& tiles, TileReport* report) {
  SkyViewFactors result;
  const int64_t rows = input.dsm.rows, cols = input.dsm.cols;
  bool sized = false;
  stream_sky_view_factors(
      context, input, options, tiles,
      [&](const SkyTile& part) {
        if (!sized) {
          tbb::parallel_for(size_t{0}, size_t{kSkyViewGrids},
                            [&](size_t g) { result.grids[g] = Raster(rows, cols); });
          if (part.states) {
            result.states = {rows, cols, patch_count(options.patches), {}};
            result.states.words.resize(static_cast<size_t>(rows * cols * result.states.words_per_pixel()));
          }
          sized = true;
        }
        const Tile tile{part.row, part.col, part.rows, part.cols, 0, 0, 0, 0};
        tbb::parallel_for(size_t{0}, size_t{kSkyViewGrids},
                          [&](size_t g) { stitch(tile, part.grids[g], result.grids[g]); });
        if (!part.states) return;
        for (int64_t word = 0; word < result.states.words_per_pixel(); ++word)
          for (int64_t row = 0; row < part.rows; ++row)
            std::copy_n(
                part.states + (word * part.rows + row) * part.cols, part.cols,
                &result.states.words[static_cast<size_t>((word * rows + part.row + row) * cols + part.col)]);
      },
      report);
  return result;
}

}  // namespace lockstep::urban
