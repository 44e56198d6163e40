// Grids of a city as arrays of Python.
#pragma once

#include <fmt/format.h>

#include "arrays.hpp"
#include "lockstep/urban.hpp"

namespace lockstep::python {

/// A grid by its name, f32; empty where it is not given.
inline urban::Raster raster_of(const nb::dict& grids, const char* name, const char* call) {
  if (!grids.contains(name)) return {};
  return urban::Raster(array_of(nb::object(grids[name]), fmt::format("{}, argument {}", call, name)));
}

/// The city, of whose heights the options say the meaning.
inline urban::CityInput city_of(const nb::dict& grids, double pixel_size_m, const urban::CityFiles& options,
                                const char* call) {
  urban::CityInput city;
  city.dsm = raster_of(grids, "dsm", call);
  city.dem = raster_of(grids, "dem", call);
  city.cdsm = raster_of(grids, "cdsm", call);
  city.tdsm = raster_of(grids, "tdsm", call);
  city.pixel_size_m = pixel_size_m;
  city.canopy_heights = options.canopy_heights;
  city.dsm_heights = options.dsm_heights;
  city.trunk_ratio = options.trunk_ratio;
  return city;
}

}  // namespace lockstep::python
