// Shadows of one direction on the ground and on walls: stage "urban.shadow".
#include "urban/rays/shadows.hpp"

#include <fmt/format.h>

#include <cmath>
#include <mutex>
#include <numbers>
#include <numeric>

#include "lockstep/error.hpp"
#include "lockstep/urban.hpp"
#include "urban/rays/kernels.hpp"
#include "urban/tiles/tile_runner.hpp"

namespace lockstep::urban {

ShadowBuffers allocate_shadow(const Device& device, const Stream& stream, const Ray& ray, const City& city,
                              const Scene& scene, bool heights) {
  const kernels::ShadowPlanes planes{scene.plants, heights};
  return {upload_on(device, stream, pack_rays({&ray, 1}, scene.shape, city.pixel_size_m)),
          device.allocate<f32>({planes.count(), scene.tile.rows, scene.tile.cols}), heights};
}

void cast_shadow(const Device& device, const Stream& stream, const Scene& s, const ShadowBuffers& b) {
  const Kernel& kernel = kernels::shadow(s.plants, b.heights);
  const int64_t row = s.row_offset(), col = s.col_offset(), pitch = s.shape.pitch;
  if (s.plants)
    device.launch_on(stream, kernel, s.core(), s.dsm, s.near_dsm, s.far, s.canopy, s.trunk, s.near_canopy,
                     b.rays, b.planes, row, col, pitch, s.highest);
  else
    device.launch_on(stream, kernel, s.core(), s.dsm, s.near_dsm, s.far, b.rays, b.planes, row, col, pitch,
                     s.highest);
}

SunSide sun_side(double azimuth_deg) {
  constexpr double pi = std::numbers::pi;
  double azimuth = std::fmod(azimuth_deg, 360.0);
  if (azimuth < 0) azimuth += 360;
  azimuth *= pi / 180;
  const float low = static_cast<float>(azimuth - pi / 2), high = static_cast<float>(azimuth + pi / 2);
  const float turn = static_cast<float>(2 * pi);
  if (azimuth - pi / 2 >= 0 && azimuth + pi / 2 < 2 * pi) return {0, low, high};
  if (azimuth - pi / 2 < 0) return {1, low + turn, high};
  return {1, low, high - turn};
}

void shade_walls(const Device& device, const Stream& stream, const Scene& s, const ShadowBuffers& b,
                 const Buffer& walls, const Buffer& aspect, const SunSide& side, const Buffer& lit) {
  device.launch_on(stream, kernels::wall_shade(s.plants), s.core(), b.planes, s.dsm, walls, aspect, lit,
                   side.branch, side.low, side.high, s.row_offset(), s.col_offset(), s.shape.pitch);
}

namespace {

/// Core results of a tile on the host: sun, vegetation, before, then the wall's sun and shadow.
using Grids = std::vector<std::vector<float>>;

std::vector<float> core_of(const Raster& raster, const Tile& tile) {
  std::vector<float> core;
  core.reserve(static_cast<size_t>(tile.core_pixels()));
  for (int64_t row = 0; row < tile.rows; ++row) {
    const float* const from = &raster.values[static_cast<size_t>((tile.row + row) * raster.cols + tile.col)];
    core.insert(core.end(), from, from + tile.cols);
  }
  return core;
}

Grids compute_tile(const Device& device, bool own_stream, const City& city, const Ray& ray, const Tile& tile,
                   const Walls* walls) {
  const Stream stream = own_stream ? device.stream() : Stream{};
  const Scene scene = upload_scene(device, stream, city, tile);
  build_maxima(device, stream, scene);
  const ShadowBuffers buffers = allocate_shadow(device, stream, ray, city, scene, walls != nullptr);
  cast_shadow(device, stream, scene, buffers);
  const size_t pixels = static_cast<size_t>(tile.core_pixels());
  Grids grids(walls ? 5 : 3, std::vector<float>(pixels, 1.0f));
  Buffer height, aspect, lit;  // alive until the reads below have waited for the stream
  if (walls) {
    const auto upload = [&](const Raster& raster) {
      std::vector<float> values = core_of(raster, tile);
      for (float& v : values)
        if (!std::isfinite(v)) v = 0;
      const Buffer buffer = device.allocate<f32>({tile.rows, tile.cols});
      device.write(buffer, values.data(), buffer.bytes(), stream);
      return buffer;
    };
    height = upload(walls->height);
    aspect = upload(walls->aspect);
    lit = device.allocate<f32>({2, tile.rows, tile.cols});
    shade_walls(device, stream, scene, buffers, height, aspect, sun_side(ray.direction.azimuth_deg), lit);
  }
  const auto read = [&](const Buffer& planes, int64_t plane, std::vector<float>& to) {
    const Buffer one = planes.rows(plane, 1);
    device.read(one, to.data(), one.bytes(), stream);
  };
  for (int k = 0; k < (scene.plants ? 3 : 1); ++k) read(buffers.planes, k, grids[static_cast<size_t>(k)]);
  for (int k = 0; k < (walls ? 2 : 0); ++k) read(lit, k, grids[static_cast<size_t>(3 + k)]);
  return grids;
}

void mask_missing(const City& city, Raster& grid) {
  if (city.missing == 0) return;
  for (int64_t p = 0; p < city.pixels(); ++p)
    if (city.is_missing(p)) grid.values[static_cast<size_t>(p)] = std::numeric_limits<float>::quiet_NaN();
}

ShadowsWithWalls run(Context& context, const CityInput& input, const Walls* walls, const Direction& sun,
                     const RayOptions& rays, const TileOptions& tiling) {
  const City city = prepare_city(input);
  if (walls)
    for (const Raster* grid : {&walls->height, &walls->aspect})
      if (grid->rows != city.rows || grid->cols != city.cols ||
          static_cast<int64_t>(grid->values.size()) != city.pixels())
        throw InputError(fmt::format("wall grid of {} x {}", grid->rows, grid->cols), "walls",
                         fmt::format("{} x {} as the DSM", city.rows, city.cols));
  const Ray ray = plan_ray(city, sun, rays);
  const TileCost cost{scene_bytes(city.has_vegetation()), walls ? 9 * 4ull : 3 * 4ull, 4};
  const TilePlan plan = plan_tiles(context, kShadowStage, city, reach_of(ray.steps), cost, tiling);

  ShadowsWithWalls out;
  Raster* const wholes[] = {&out.shadows.buildings, &out.shadows.vegetation,
                            &out.shadows.vegetation_before_buildings, &out.walls.sun, &out.walls.shadow};
  const size_t count = walls ? 5 : 3;
  for (size_t k = 0; k < count; ++k) *wholes[k] = Raster(city.rows, city.cols);
  std::mutex delivering;
  std::vector<size_t> numbers(plan.tiles.size());
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  int64_t done = 0;
  TileReport report;
  for_each_tile(
      numbers, plan.workers,
      [&](size_t number) {
        const Tile& tile = plan.tiles[number];
        const Grids grids = context.stage(kShadowStage, [&](const Device& device) {
          return compute_tile(device, plan.workers > 1, city, ray, tile, walls);
        });
        const std::lock_guard lock(delivering);
        for (size_t k = 0; k < count; ++k) stitch(tile, grids[k].data(), *wholes[k]);
        ++done;
        if (tiling.on_progress) tiling.on_progress(done, static_cast<int64_t>(plan.tiles.size()));
      },
      report);
  for (size_t k = 0; k < count; ++k) mask_missing(city, *wholes[k]);
  return out;
}

}  // namespace

Shadows compute_shadows(Context& context, const CityInput& city, const Direction& sun, const RayOptions& rays,
                        const TileOptions& tiles) {
  return run(context, city, nullptr, sun, rays, tiles).shadows;
}

ShadowsWithWalls compute_wall_shadows(Context& context, const CityInput& city, const Walls& walls,
                                      const Direction& sun, const RayOptions& rays,
                                      const TileOptions& tiles) {
  return run(context, city, &walls, sun, rays, tiles);
}

}  // namespace lockstep::urban
