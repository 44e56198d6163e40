// The parts of the stage "urban.shadow", for its cases and for the tiles.
#pragma once

#include "lockstep/device.hpp"
#include "urban/city/scene.hpp"
#include "urban/sky/sky_plan.hpp"
#include "urban/tiles/run_tiles.hpp"

namespace lockstep::urban {

inline constexpr char kShadowStage[] = "urban.shadow";

/// One direction over a core.
struct ShadowBuffers {
  Buffer rays;    ///< table of the ray for the scene's shape
  Buffer planes;  ///< f32 (planes, rows, cols) as kernels::ShadowPlanes
  bool heights = false;
};
Buffer allocate_shadow_planes(const Device& device, const Scene& scene, bool heights);
/// Uploads the ray's table, into the memory of the last one where that suffices.
void aim_shadow(const Device& device, const Stream& stream, const Ray& ray, const City& city,
                const Scene& scene, ShadowBuffers& buffers);
ShadowBuffers allocate_shadow(const Device& device, const Stream& stream, const Ray& ray, const City& city,
                              const Scene& scene, bool heights);
void cast_shadow(const Device& device, const Stream& stream, const Scene& scene,
                 const ShadowBuffers& buffers);

/// How wall directions are compared with the sun's, as kernels::wall_shade takes it.
struct SunSide {
  int branch;
  float low, high;
};
SunSide sun_side(double azimuth_deg);

/// Sunlit and shaded heights into `lit`, f32 (2, rows, cols); walls and aspect are core grids; buffers with
/// heights.
void shade_walls(const Device& device, const Stream& stream, const Scene& scene, const ShadowBuffers& buffers,
                 const Buffer& walls, const Buffer& aspect, const SunSide& side, const Buffer& lit);

/// Computes all tiles; their planes are those of Shadows, and with walls those of WallShadows. Without walls:
/// null.
TileReport stream_shadows(Context& context, const City& city, const Walls* walls, const Direction& sun,
                          const RayOptions& rays, const TileOptions& tiles, const TileSink& sink);

}  // namespace lockstep::urban
