// Everything about a sky that does not depend on the pixels: rays, weights, masks.
#pragma once

#include <cstdint>
#include <vector>

#include "urban/city/prepare.hpp"
#include "urban/rays/ray_table.hpp"
#include "urban/sky/patches.hpp"

namespace lockstep::urban {

struct SkyPlan {
  SkyDivision sky;
  std::vector<Ray> rays;  ///< one a patch; the open zenith has no steps
  Reach reach;
  std::vector<int32_t> view_table;  ///< for kernels::sky_view
  double pixel_size_m = 1.0;

  int patches() const { return static_cast<int>(rays.size()); }
  int words() const { return (patches() + 15) / 16; }
  int bands() const { return static_cast<int>(sky.bands.size()); }
};

SkyPlan plan_sky(const City& city, const SkyOptions& options);

/// The ray towards one direction over the whole raster of a city.
Ray plan_ray(const City& city, const Direction& direction, const RayOptions& options);

}  // namespace lockstep::urban
