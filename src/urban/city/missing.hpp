// Pixels without a value.
#pragma once

#include <cmath>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

/// Of a value of the raster, before prepare_city.
inline bool is_missing(const Raster& raster, float value) {
  return !std::isfinite(value) || (raster.nodata && value == *raster.nodata);
}

}  // namespace lockstep::urban
