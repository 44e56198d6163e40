// A city from its files: rasters of one grid, heights in metres, the place on the Earth.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "io/rasters/raster.hpp"
#include "io/text/input_memory.hpp"
#include "lockstep/urban.hpp"
#include "urban/city/prepare.hpp"
#include "urban/sun/grid_north.hpp"

namespace lockstep::urban {

struct LoadedCity {
  CityInput input;
  std::optional<City> by_windows;  ///< where memory does not hold its rasters, which `input` has not then
  io::RasterGrid grid;             ///< that results take over
  std::string dsm_file;            ///< for messages
  double scale = 1;  ///< of the projection, where it is far enough from 1 to be corrected; else 1
  GridNorth north;   ///< at the raster's centre; true north if the raster specifies no place
  std::vector<std::string> doubts;     ///< texts of warnings about the rasters
  std::vector<io::InputClaim> claims;  ///< of the rasters in `input`
};

/// The DEM of an absolute DSM, which separates ground from roofs: read where a run counts the ground.
enum class GroundUse { none, counted };

/// Throws InputError for files that are none, rasters that do not match, and projections whose scale differs
/// too much between the axes or over the raster. A scale that differs from 1 by more than 0.5 % is taken out of
/// the pixel size, and said.
LoadedCity read_city(const CityFiles& files, GroundUse ground = GroundUse::none);
/// The same, but a city that would take more than half of the memory that a run may use stays in its files, which is
/// said.
LoadedCity read_city(const CityFiles& files, const TileOptions& tiles, GroundUse ground = GroundUse::none);

/// The same, left in its files in any case and read once in bands of at most `band_bytes` or one row.
LoadedCity read_city_by_windows(const CityFiles& files, uint64_t band_bytes,
                                GroundUse ground = GroundUse::none);

/// Finds the grid's north and scale, if the raster specifies its place, as read_city() does.
void find_north(LoadedCity& city);

/// Ready for rays, with its rasters moved in or read tile by tile.
City take_city(LoadedCity& loaded);

/// Another raster of the city's grid: heights (the DEM, walls), or other numbers.
enum class LayerValues { heights, numbers };
Raster read_layer(const std::filesystem::path& file, const CityFiles& files, LoadedCity& city,
                  LayerValues values);

}  // namespace lockstep::urban
