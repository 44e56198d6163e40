// The steps of a ray over the grid: the same for every pixel, so they are built once, in f64, on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

/// Offset from the target pixel to the pixel under the ray, and the ray's rise above the target (m).
struct RayStep {
  int64_t drow;
  int64_t dcol;
  double rise_m;
};

/// Advance of a ray a step; along the dominant axis ±1 pixel.
struct RaySlope {
  bool east_west = false;  ///< the dominant axis
  double rows = 0;         ///< pixels a step, south positive, not rounded
  double cols = 0;         ///< pixels a step, east positive
  double tangent = 0;      ///< |tan azimuth|
  double stride = 0;       ///< horizontal length of a step, in pixels
  double rise = 0;         ///< tan altitude; some 1e16 at the zenith
};

/// Throws InputError for an altitude outside (0, 90].
RaySlope ray_slope(const Direction& direction);

/// Quantities that bound a ray.
struct RayBounds {
  int64_t rows = 0;  ///< of the whole raster, also when only a part of it is at hand
  int64_t cols = 0;
  double pixel_size_m = 1.0;
  double relief_m = 0.0;  ///< highest object minus lowest target, or more
  double max_reach_m = std::numeric_limits<double>::infinity();
};

/// Steps i = 0, 1, 2 … towards `direction`: one pixel a step along the dominant axis, the other axis rounded
/// half to even. The list ends one step after the ray has risen above the relief, left the raster or passed
/// the longest reach. Towards the zenith: the pixel itself and, infinitely high, its northern neighbour, as
/// f64 evaluates tan 90°. Throws InputError for an altitude outside (0, 90].
std::vector<RayStep> ray_steps(const Direction& direction, const RayBounds& bounds);

/// How far rays reach from a pixel, in pixels.
struct Reach {
  int64_t north = 0, south = 0, west = 0, east = 0;

  void include(const RayStep& step);
  void include(const Reach& other);
};
Reach reach_of(const std::vector<RayStep>& steps);

}  // namespace lockstep::urban
