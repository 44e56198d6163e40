// From height grids as files hold them to the grids that rays are cast through.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

/// Height of a pixel that casts no shadow: missing ones and those outside the raster. Finite, as WGSL
/// demands.
inline constexpr float kNoHeight = -1e30f;

struct City;

/// Parts of a city whose grids are not held in memory.
class CityWindows {
 public:
  virtual ~CityWindows() = default;
  /// The prepared grids of a window with the datum, the lowest and the highest of the whole city, as they would be cut
  /// out of it. May be called from any thread.
  virtual City read(int64_t row, int64_t col, int64_t rows, int64_t cols) const = 0;
  virtual bool has_vegetation() const = 0;
  /// Whether there is a DEM, which ground() needs: the mask of a window, as ground_mask() of the whole has it.
  virtual bool has_ground() const = 0;
  virtual std::vector<uint8_t> ground(int64_t row, int64_t col, int64_t rows, int64_t cols) const = 0;
  /// Hashes of the whole grids, for keys.
  virtual const std::string& hashes() const = 0;
};

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
  /// Where the grids are not held: all of them are empty then, and read from here.
  std::shared_ptr<const CityWindows> windows = {};

  bool has_vegetation() const { return windows ? windows->has_vegetation() : !canopy.empty(); }
  bool has_ground() const { return windows ? windows->has_ground() : !dem.empty(); }
  int64_t pixels() const { return rows * cols; }
  bool is_missing(int64_t pixel) const { return dsm.as<float>()[static_cast<size_t>(pixel)] == kNoHeight; }
  /// A plant without trunk zone, higher than 1 m absolute: blocks the sun on its own pixel.
  bool is_bush(int64_t pixel) const {
    const size_t p = static_cast<size_t>(pixel);
    return has_vegetation() && trunk.as<float>()[p] == 0.0f && canopy.as<float>()[p] > 1.0f;
  }
  double relief_m() const { return static_cast<double>(highest) - static_cast<double>(lowest); }
};

/// Turns the grids into those of a city in place: moved in, they need no further memory. Throws InputError
/// where shapes differ, the pixel size is not positive, or no pixel holds a height.
City prepare_city(CityInput input);
/// A part of a city whose heights are raised by `shift`, as prepare_city() makes it; canopy and trunk are there where
/// they were given, be there a plant or not, and so may be all pixels without a height. Lowest, highest and missing are
/// the part's: lowest is infinite where no pixel has a height.
City prepare_part(CityInput input, float shift);

/// 1 on ground, 0 on buildings (2 m or more above the DEM). Needs a DEM.
std::vector<uint8_t> ground_mask(const City& city);
/// Of a window, row by row; of a city that is not held it is read.
std::vector<uint8_t> ground_mask(const City& city, int64_t row, int64_t col, int64_t rows, int64_t cols);

}  // namespace lockstep::urban
