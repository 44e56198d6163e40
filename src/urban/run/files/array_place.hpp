// The place on the Earth of a city given as arrays.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/rasters/raster.hpp"

namespace lockstep::urban {

struct ArrayPlace {
  double pixel_size_m = 1;  ///< on the ground: the scale of the projection is taken out, as of files
  double convergence_deg = 0;
  std::optional<io::LonLat> centre;  ///< none of a CRS without a place on the Earth
  std::vector<std::string> doubts;
};

/// Of a grid with a transform and a CRS, which any text that GDAL reads may name. Throws InputError, naming `where`, for
/// degrees, for units other than metres, also of heights, and for projections that files may not have; UnsupportedError
/// without GDAL.
ArrayPlace place_of_array(io::RasterGrid grid, const std::string& where);

}  // namespace lockstep::urban
