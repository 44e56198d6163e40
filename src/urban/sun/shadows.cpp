// Shadows of one direction on the ground and on walls: stage "urban.shadow".
#include "urban/sun/shadows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "core/hash.hpp"
#include "lockstep/error.hpp"
#include "urban/rays/kernels.hpp"

namespace lockstep::urban {

Buffer allocate_shadow_planes(const Device& device, const Scene& scene, bool heights) {
  return allocate_core<f32>(device, kernels::ShadowPlanes{scene.plants, heights}.count(), scene.tile);
}

void aim_shadow(const Device& device, const Stream& stream, const Ray& ray, const City& city,
                const Scene& scene, ShadowBuffers& buffers) {
  const std::vector<int32_t> table = pack_rays({&ray, 1}, scene.shape, city.pixel_size_m);
  const auto words = static_cast<int64_t>(table.size());
  if (!buffers.rays || buffers.rays.elements() < words)
    buffers.rays = device.allocate<i32>({words + words / 2});
  const Buffer used = buffers.rays.rows(0, words);
  device.write(used, table.data(), used.bytes(), stream);
}

ShadowBuffers allocate_shadow(const Device& device, const Stream& stream, const Ray& ray, const City& city,
                              const Scene& scene, bool heights) {
  ShadowBuffers buffers{{}, allocate_shadow_planes(device, scene, heights), heights};
  aim_shadow(device, stream, ray, city, scene, buffers);
  return buffers;
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

constexpr int kShadowPlanes = 3, kWallPlanes = 2;

/// The core of a whole grid on the device; what is not finite is 0.
Buffer upload_core(const Device& device, const Stream& stream, const Raster& raster, const Tile& tile) {
  std::vector<float> core;
  core.reserve(static_cast<size_t>(tile.core_pixels()));
  for (int64_t row = 0; row < tile.rows; ++row) {
    const auto from = raster.pixels().begin() + (tile.row + row) * raster.cols() + tile.col;
    core.insert(core.end(), from, from + tile.cols);
  }
  for (float& v : core)
    if (!std::isfinite(v)) v = 0;
  const Buffer buffer = allocate_core<f32>(device, 1, tile).reshape({tile.rows, tile.cols});
  device.write(buffer, core.data(), buffer.bytes(), stream);
  return buffer;
}

void compute_tile(const Device& device, const Stream& stream, const City& city, const Ray& ray,
                  const Tile& tile, const Walls* walls, const TileResult& result) {
  const Scene scene = upload_scene(device, stream, city, tile);
  build_maxima(device, stream, scene);
  const ShadowBuffers buffers = allocate_shadow(device, stream, ray, city, scene, walls != nullptr);
  cast_shadow(device, stream, scene, buffers);
  const auto read = [&](const Buffer& planes, int64_t plane, size_t to) {
    const Buffer one = planes.rows(plane, 1);
    device.read(one, result.plane(to), one.bytes(), stream);
  };
  for (size_t k = 0; k < kShadowPlanes; ++k) {
    if (k == 0 || scene.plants)
      read(buffers.planes, static_cast<int64_t>(k), k);
    else
      std::fill_n(result.plane(k), tile.core_pixels(), 1.0f);
  }
  if (!walls) return;
  const Buffer height = upload_core(device, stream, walls->height, tile),
               aspect = upload_core(device, stream, walls->aspect, tile),
               lit = allocate_core<f32>(device, kWallPlanes, tile);
  shade_walls(device, stream, scene, buffers, height, aspect, sun_side(ray.direction.azimuth_deg), lit);
  for (size_t k = 0; k < kWallPlanes; ++k) read(lit, static_cast<int64_t>(k), kShadowPlanes + k);
}

void check(const City& city, const Walls& walls) {
  for (const Raster* grid : {&walls.height, &walls.aspect})
    if (grid->values.shape() != city.dsm.shape())
      throw InputError(fmt::format("wall grid of {}", to_string(grid->values.shape())), "walls",
                       fmt::format("{} x {} as the DSM", city.rows, city.cols));
}

std::string key_of(const Walls& walls) {
  std::string text;
  for (const Raster* grid : {&walls.height, &walls.aspect}) text += " " + to_hex(hash128(grid->values.raw()));
  return text;
}

}  // namespace

TileReport stream_shadows(Context& context, const City& city, const Walls* walls, const Direction& sun,
                          const RayOptions& rays, const TileOptions& tiles, const TileSink& sink) {
  if (walls && city.windows)
    throw InputError("walls of a city that is read tile by tile", "walls", "a city that is in memory");
  if (walls) check(city, *walls);
  const Ray ray = plan_ray(city, sun, rays);
  const bool plants = city.has_vegetation();
  TileJob job;
  job.stage = kShadowStage;
  job.field_prefix = "shadow_";
  job.reach = reach_of(ray.steps);
  job.planes = kShadowPlanes + (walls ? kWallPlanes : 0);
  const kernels::ShadowPlanes planes{plants, walls != nullptr};
  job.cost.window_bytes = scene_bytes(plants);
  job.cost.core_bytes = 4 * static_cast<uint64_t>(planes.count() + (walls ? 2 + kWallPlanes : 0));
  job.cost.widest_core_bytes = 4 * static_cast<uint64_t>(planes.count());
  job.cost.host_core_bytes = 4 * static_cast<uint64_t>(job.planes);
  if (walls) job.taken_over = {8, 4, 0, 0};  // of the stage that found them: heights, walls and directions
  job.options = fmt::format("azimuth {}, altitude {}, reach {} m, walls{}", sun.azimuth_deg, sun.altitude_deg,
                            rays.max_reach_m, walls && !tiles.resume_folder.empty() ? key_of(*walls) : "");
  job.compute = [&](const Device& device, const Stream& stream, const City& part, const Tile& tile,
                    const TileResult& result,
                    const Advance&) { compute_tile(device, stream, part, ray, tile, walls, result); };
  return run_tiles(context, city, job, tiles, sink);
}

namespace {

ShadowsWithWalls compute(Context& context, const CityInput& input, const Walls* walls, const Direction& sun,
                         const RayOptions& rays, const TileOptions& tiles, TileReport* report) {
  const City city = prepare_city(input);
  ShadowsWithWalls out;
  std::vector<Raster*> wholes = {&out.shadows.buildings, &out.shadows.vegetation,
                                 &out.shadows.vegetation_before_buildings};
  if (walls) wholes.insert(wholes.end(), {&out.walls.sun, &out.walls.shadow});
  for (Raster* whole : wholes) *whole = Raster(city.rows, city.cols);
  const TileReport done =
      stream_shadows(context, city, walls, sun, rays, tiles, [&](const Tile& tile, const TileResult& result) {
        for (size_t k = 0; k < wholes.size(); ++k) stitch(tile, result.plane(k), *wholes[k]);
      });
  if (report) *report = done;
  return out;
}

}  // namespace

Shadows compute_shadows(Context& context, const CityInput& city, const Direction& sun, const RayOptions& rays,
                        const TileOptions& tiles, TileReport* report) {
  return compute(context, city, nullptr, sun, rays, tiles, report).shadows;
}

ShadowsWithWalls compute_wall_shadows(Context& context, const CityInput& city, const Walls& walls,
                                      const Direction& sun, const RayOptions& rays, const TileOptions& tiles,
                                      TileReport* report) {
  return compute(context, city, &walls, sun, rays, tiles, report);
}

}  // namespace lockstep::urban
