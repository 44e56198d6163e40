// Parts of maps of a city besides values: roofs, water, outlines of buildings and tree crowns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/pictures/map_picture.hpp"
#include "io/rasters/raster.hpp"
#include "urban/city/prepare.hpp"

namespace lockstep::urban {

struct MapBase {
  std::vector<uint8_t> cover;      ///< 0 ground, 1 roof, 2 water, 3 roof or water
  std::vector<uint8_t> buildings;  ///< 1 inside; empty: unknown
  std::vector<uint8_t> crowns;     ///< 1 below a crown; empty: no plants
  io::Image under;                 ///< a basemap; empty: none

  /// Outlines, and covers where `covered`. The options refer to this.
  void put_into(io::MapPictureOptions& options, bool covered) const;
};

/// The basemap of the options, where its grid is drawn; else empty. Throws InputError where it does not fit the grid.
io::Image read_map_under(const MapOptions& options, const io::RasterGrid& grid);

/// `ground` as people_ground() gives it; `land_cover`: codes of the model, or empty.
MapBase map_base(const City& city, std::span<const int32_t> land_cover, std::span<const uint8_t> ground);

}  // namespace lockstep::urban
