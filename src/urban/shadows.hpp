// The parts of the stage "urban.shadow", for its cases and for the tiles.
#pragma once

#include "lockstep/device.hpp"
#include "urban/scene.hpp"
#include "urban/sky_plan.hpp"

namespace lockstep::urban {

inline constexpr char kShadowStage[] = "urban.shadow";

/// Core grids of one direction, f32 (rows, cols).
struct ShadowBuffers {
  Buffer rays;
  Buffer sun, vegetation, before;  ///< 1 or 0; the last two empty without plants
  Buffer shade, depth;             ///< heights (m), where asked for; depth empty without plants
};
ShadowBuffers allocate_shadow(const Device& device, const Ray& ray, const City& city, const Scene& scene,
                              bool heights);
void cast_shadow(const Device& device, const Stream& stream, const Scene& scene,
                 const ShadowBuffers& buffers);

/// How wall directions are compared with the sun's, as kernels::wall_shade takes it.
struct SunSide {
  int branch;
  float low, high;
};
SunSide sun_side(double azimuth_deg);

/// Sunlit and shaded heights; walls and aspect are core grids.
void shade_walls(const Device& device, const Stream& stream, const Scene& scene, const ShadowBuffers& buffers,
                 const Buffer& walls, const Buffer& aspect, const SunSide& side, const Buffer& sun,
                 const Buffer& shadow);

}  // namespace lockstep::urban
