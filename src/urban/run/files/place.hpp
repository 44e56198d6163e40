// Where a city is on Earth.
#pragma once

#include <fmt/format.h>

#include "core/record/journal.hpp"
#include "io/rasters/raster.hpp"
#include "lockstep/schema.hpp"
#include "urban/run/files/city_files.hpp"

namespace lockstep::urban {

/// The place that the options give, else the raster's centre, which the record of the run gets. Throws InputError if
/// neither specifies it.
template <class Options>
io::LonLat place_of(const Options& options, const LoadedCity& city) {
  if (options.latitude_deg) return {*options.longitude_deg, *options.latitude_deg};
  if (city.grid.crs_wkt.empty())
    throw schema_of<Options>().error({OptionError::Kind::invalid, "", "the raster has no location on Earth",
                                      "a CRS, or {latitude} and {longitude}", "", city.dsm_file});
  const io::LonLat place = io::centre_lon_lat(city.grid);
  journal::found("latitude", fmt::format("{}", place.lat));
  journal::found("longitude", fmt::format("{}", place.lon));
  return place;
}

}  // namespace lockstep::urban
