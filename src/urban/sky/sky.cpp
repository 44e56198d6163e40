// Sky view factors: tiles through the stage "urban.svf".
#include "urban/sky/sky.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>

#include "device/variants/variants.hpp"
#include "lockstep/error.hpp"
#include "urban/rays/kernels.hpp"

namespace lockstep::urban {
namespace {

/// Words of states that a launch casts for a tile.
int words_at_once(const Device& device, const Tile& tile, int words) {
  const variants::Axis pixels{"pixels", double(tile.core_pixels())};
  return variants::choose(sky_computation(), device, {{}, {&pixels, 1}}).variant == 1 ? words : 1;
}

}  // namespace

const variants::Computation& sky_computation() {
  static const variants::Computation computation(
      {.name = "urban.sky", .variants = {"words", "whole"}, .axes = {"pixels"}});
  return computation;
}

SkyBuffers allocate_sky(const Device& device, const Stream& stream, const SkyPlan& plan, const Scene& scene) {
  const Tile& t = scene.tile;
  return {allocate_core<u32>(device, plan.words(), t),
          allocate_core<f32>(device, scene.plants ? kSkyViewGrids : kSectors, t),
          upload_on(device, stream, pack_rays(plan.rays, scene.shape, plan.pixel_size_m)),
          upload_on(device, stream, plan.view_table)};
}

void cast_sky(const Device& device, const Stream& stream, const SkyPlan& plan, const Scene& s,
              const SkyBuffers& b, int first_word, int words) {
  const Buffer states = b.states.rows(first_word, words);
  const Shape extent{words, s.tile.rows, s.tile.cols};
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

void cast_words(const Device& device, const Stream& stream, const SkyPlan& plan, const Scene& scene,
                const SkyBuffers& buffers, int step, const Advance& advance) {
  for (int word = 0; word < plan.words(); word += step) {
    cast_sky(device, stream, plan, scene, buffers, word, step);
    // Launches on the host have ended; elsewhere progress is what has been waited for.
    if (step == 1 && !capabilities_of(device).host_memory) device.synchronize(stream);
    advance(step);
  }
}

SkyBuffers make_sky_tile(const Device& device, const Stream& stream, const City& city, const SkyPlan& plan,
                         const Tile& tile, const Advance& advance) {
  const Scene scene = upload_scene(device, stream, city, tile);
  build_maxima(device, stream, scene);
  const SkyBuffers buffers = allocate_sky(device, stream, plan, scene);
  cast_words(device, stream, plan, scene, buffers, words_at_once(device, tile, plan.words()), advance);
  view_sky(device, stream, plan, scene, buffers);
  return buffers;
}

void compute_sky_tile(const Device& device, const Stream& stream, const City& city, const SkyPlan& plan,
                      const Tile& tile, const TileResult& result, const Advance& advance) {
  const SkyBuffers buffers = make_sky_tile(device, stream, city, plan, tile, advance);
  device.read(buffers.grids, result.plane(0), buffers.grids.bytes(), stream);
  if (result.words()) device.read(buffers.states, result.words(), buffers.states.bytes(), stream);
  // Without plants the device gives no grids of them: they are 1.
  if (!city.has_vegetation()) std::fill(result.plane(kSectors), result.plane(kSkyViewGrids), 1.0f);
}

TileReport stream_sky(Context& context, const City& city, const SkyOptions& options, const TileOptions& tiles,
                      const TileSink& sink) {
  const SkyPlan plan = plan_sky(city, options);
  const uint64_t words = static_cast<uint64_t>(plan.words());
  const uint64_t device_grids = city.has_vegetation() ? kSkyViewGrids : kSectors;
  TileJob job;
  job.stage = kSkyStage;
  job.field_prefix = "svf_";
  job.reach = plan.reach;
  job.planes = kSkyViewGrids;
  job.words = options.keep_states ? plan.words() : 0;
  job.cost.window_bytes = scene_bytes(city.has_vegetation());
  job.cost.core_bytes = 4 * (words + device_grids);
  job.cost.widest_core_bytes = 4 * std::max<uint64_t>(words, kSkyViewGrids);
  job.cost.host_core_bytes = 4 * static_cast<uint64_t>(job.planes + job.words);
  job.parts = plan.words();
  job.patches = plan.patches();
  job.options = fmt::format("{} patches, zenith {}, annuli {}, reach {} m, states {}",
                            patch_count(options.patches), static_cast<int>(options.zenith),
                            static_cast<int>(options.edges), options.rays.max_reach_m, options.keep_states);
  job.compute = [&](const Device& device, const Stream& stream, const City& part, const Tile& tile,
                    const TileResult& result, const Advance& advance) {
    compute_sky_tile(device, stream, part, plan, tile, result, advance);
  };
  return run_tiles(context, city, job, tiles, sink);
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
  const TileReport done = stream_sky(
      context, prepare_city(input), options, tiles, [&](const Tile& tile, const TileResult& result) {
        SkyTile part{tile.row, tile.col, tile.rows, tile.cols, {}, result.words()};
        for (size_t g = 0; g < kSkyViewGrids; ++g) part.grids[g] = result.plane(g);
        sink(part);
      });
  if (report) *report = done;
}

SkyViewFactors compute_sky_view_factors(Context& context, const CityInput& input, const SkyOptions& options,
                                        const TileOptions& tiles, TileReport* report) {
  const City city = prepare_city(input);
  const int64_t rows = city.rows, cols = city.cols;
  SkyViewFactors result;
  tbb::parallel_for(size_t{0}, size_t{kSkyViewGrids},
                    [&](size_t g) { result.grids[g] = Raster(rows, cols); });
  if (options.keep_states) {
    result.states = {rows, cols, patch_count(options.patches), {}};
    result.states.words.resize(static_cast<size_t>(rows * cols * result.states.words_per_pixel()));
  }
  const TileReport done =
      stream_sky(context, city, options, tiles, [&](const Tile& tile, const TileResult& part) {
        tbb::parallel_for(size_t{0}, size_t{kSkyViewGrids},
                          [&](size_t g) { stitch(tile, part.plane(g), result.grids[g]); });
        if (!part.words()) return;
        for (int64_t word = 0; word < result.states.words_per_pixel(); ++word)
          for (int64_t row = 0; row < tile.rows; ++row)
            std::copy_n(
                part.words() + (word * tile.rows + row) * tile.cols, tile.cols,
                &result.states.words[static_cast<size_t>((word * rows + tile.row + row) * cols + tile.col)]);
      });
  if (report) *report = done;
  return result;
}

}  // namespace lockstep::urban
