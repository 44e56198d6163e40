// From height grids as files hold them to the grids that rays are cast through.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

/// Height of a pixel that casts no shadow: missing ones and those outside the raster. Finite, as WGSL
/// demands.
inline constexpr float kNoHeight = -1e30f;

/// Grids, f32 (rows, cols), in one vertical datum without negative heights.
struct City {
  int64_t rows = 0;
  int64_t cols = 0;
  double pixel_size_m = 1.0;
  Array dsm;            ///< ground and buildings; kNoHeight where missing
  Array canopy;         ///< absolute top of plants, 0 = none; empty without vegetation
  Array trunk;          ///< absolute top of the trunk zone, at most the canopy, 0 = none; empty likewise
  Array dem;            ///< ground alone, or empty
  float lowest = 0;     ///< lowest DSM
  float highest = 0;    ///< highest of DSM, canopy and trunk
  float shift = 0;      ///< what was added to absolute heights so that none is negative
  int64_t missing = 0;  ///< missing pixels

  bool has_vegetation() const { return !canopy.empty(); }
  int64_t pixels() const { return rows * cols; }
  bool is_missing(int64_t pixel) const { return dsm.as<float>()[static_cast<size_t>(pixel)] == kNoHeight; }
  /// A plant without trunk zone, higher than 1 m absolute: stands in the sun's way on its own pixel.
  bool is_bush(int64_t pixel) const {
    const size_t p = static_cast<size_t>(pixel);
    return has_vegetation() && trunk.as<float>()[p] == 0.0f && canopy.as<float>()[p] > 1.0f;
  }
  double relief_m() const { return static_cast<double>(highest) - static_cast<double>(lowest); }
};

/// Turns the grids into those of a city in place: moved in, they need no further memory. Throws InputError
/// where shapes differ, the pixel size is not positive, or no pixel holds a height.
City prepare_city(CityInput input);

/// 1 on ground, 0 on buildings (2 m or more above the DEM). Needs a DEM.
std::vector<uint8_t> ground_mask(const City& city);

}  // namespace lockstep::urban
