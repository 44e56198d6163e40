// The pixels of a tree's crown and the heights that rasters have of it.
#pragma once

#include <vector>

#include "lockstep/urban/plant.hpp"
#include "urban/run/files/city_files.hpp"

namespace lockstep::urban {

struct CrownPixel {
  int64_t row = 0, col = 0;      ///< from the trunk's pixel
  float top_m = 0, trunk_m = 0;  ///< above the ground
};

/// Half an ellipsoid over the trunk zone: pixels whose centre is under it, row by row, that of the trunk included.
std::vector<CrownPixel> crown_of(const TreeSpecies& species, double pixel_size_m);

/// The height of a pixel of a tree as a raster of the city's convention has it, and as prepare_city() makes it of that.
struct TreeHeights {
  CanopyHeights convention = CanopyHeights::above_ground;
  float shift = 0;  ///< of the prepared city
  float in_file(float above_ground_m, float ground_m) const {
    return convention == CanopyHeights::absolute && above_ground_m > 0 ? above_ground_m + (ground_m - shift)
                                                                       : above_ground_m;
  }
  float in_city(float above_ground_m, float ground_m) const {
    if (!(above_ground_m > 0)) return 0;
    return convention == CanopyHeights::absolute ? in_file(above_ground_m, ground_m) + shift
                                                 : above_ground_m + ground_m;
  }
};

}  // namespace lockstep::urban
