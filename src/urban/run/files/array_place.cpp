#include "urban/run/files/array_place.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "io/rasters/crs.hpp"
#include "io/rasters/gdal/gdal_api.hpp"
#include "lockstep/error.hpp"
#include "urban/run/files/city_files.hpp"

namespace lockstep::urban {

ArrayPlace place_of_array(io::RasterGrid grid, const std::string& where) {
  io::describe_crs(io::require_gdal(where), grid);
  io::require_square_metres(grid, where);
  if (grid.vertical_metres > 0 && std::abs(grid.vertical_metres - 1) > 1e-9)
    throw InputError(fmt::format("one unit of its vertical CRS is {} m", grid.vertical_metres), where,
                     "heights in metres");
  LoadedCity city;
  city.grid = std::move(grid);
  city.dsm_file = where;
  city.input.pixel_size_m = city.grid.pixel_size();
  find_north(city);
  ArrayPlace place{city.input.pixel_size_m, city.north.convergence_deg, {}, city.doubts};
  if (place.doubts.empty()) place.centre = io::centre_lon_lat(city.grid);
  return place;
}

}  // namespace lockstep::urban
