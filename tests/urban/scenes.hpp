// Small cities for the tests.
#pragma once

#include <cstdint>

#include "lockstep/urban.hpp"
#include "urban/city/prepare.hpp"
#include "urban/city/random_city.hpp"
#include "urban/reference.hpp"

namespace lockstep::urban::testing {

/// The 64 × 64 scene of the tiny reference: a block 15 m high, a tree row with its crown between 2.5 and 10
/// m, a bush.
inline CityInput tiny_city(double pixel_size_m) {
  CityInput city;
  city.dsm = Raster(64, 64, 2.0f);
  city.cdsm = Raster(64, 64, 0.0f);
  city.tdsm = Raster(64, 64, 0.0f);
  city.pixel_size_m = pixel_size_m;
  for (int r = 24; r <= 39; ++r)
    for (int c = 24; c <= 39; ++c) city.dsm.at(r, c) = 17.0f;
  for (int r = 45; r <= 50; ++r)
    for (int c = 10; c <= 15; ++c) {
      city.cdsm.at(r, c) = 10.0f;
      city.tdsm.at(r, c) = 2.5f;
    }
  for (int r = 10; r <= 12; ++r)
    for (int c = 48; c <= 51; ++c) city.cdsm.at(r, c) = 3.0f;
  return city;
}

using urban::random_city;

template <class Real = float>
reference::Cast<Real> cast_rays(const City& city, const Direction& direction, bool heights = true) {
  return reference::cast<Real>(
      city, ray_steps(direction, {city.rows, city.cols, city.pixel_size_m, city.relief_m()}), heights);
}

}  // namespace lockstep::urban::testing
