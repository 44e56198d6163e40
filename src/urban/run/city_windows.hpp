// A city that stays in its files: read tile by tile if it does not fit into memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/rasters/raster.hpp"
#include "lockstep/urban.hpp"
#include "urban/city/prepare.hpp"

namespace lockstep::urban {

/// A raster of the city that is open. Null: there is none.
struct OpenLayer {
  std::unique_ptr<io::RasterReader> reader = {};
  io::HeightKind kind = io::HeightKind::absolute;
  std::string where = {};
};

/// The rasters of a city, all of one grid.
struct OpenCity {
  OpenLayer dsm, dem, cdsm, tdsm;
  CityInput input;  ///< all but its rasters
};

/// Bytes that the whole city takes where it is held.
uint64_t held_bytes(const OpenCity& city);

/// Reads all rasters once (twice where heights are negative), in bands of rows of at most `band_bytes` or one row, and
/// checks them as read_city() does. The city keeps the files open, its grids are empty. Throws InputError for files
/// that cannot be read in parts.
City city_by_windows(OpenCity city, uint64_t band_bytes);

}  // namespace lockstep::urban
