// Small cities for the tests.
#pragma once

#include <cstdint>
#include <random>

#include "lockstep/urban.hpp"
#include "urban/prepare.hpp"
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

/// Blocks, trees and bushes at random on gently uneven ground.
inline CityInput random_city(int64_t rows, int64_t cols, unsigned seed, bool vegetation = true,
                             double pixel_size_m = 1.0) {
  std::mt19937 random(seed);
  const auto uniform = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * (static_cast<double>(random()) / 4294967296.0));
  };
  const auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  CityInput city;
  city.pixel_size_m = pixel_size_m;
  city.dsm = Raster(rows, cols);
  for (float& h : city.dsm.values) h = uniform(5.0, 5.5);
  const int64_t blocks = 1 + rows * cols / 400;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t r0 = pick(rows), c0 = pick(cols), h = 2 + pick(12), w = 2 + pick(12);
    const float top = uniform(8, 30);
    for (int64_t r = r0; r < std::min(rows, r0 + h); ++r)
      for (int64_t c = c0; c < std::min(cols, c0 + w); ++c) city.dsm.at(r, c) = top;
  }
  if (!vegetation) return city;
  city.cdsm = Raster(rows, cols);
  city.tdsm = Raster(rows, cols);
  for (int64_t t = 0; t < 1 + rows * cols / 300; ++t) {
    const int64_t r0 = pick(rows), c0 = pick(cols), size = 1 + pick(5);
    const float top = uniform(2, 15);
    const bool bush = pick(4) == 0;
    for (int64_t r = r0; r < std::min(rows, r0 + size); ++r)
      for (int64_t c = c0; c < std::min(cols, c0 + size); ++c) {
        city.cdsm.at(r, c) = top;
        city.tdsm.at(r, c) = bush ? 0.0f : top * 0.25f;
      }
  }
  return city;
}

template <class Real = float>
reference::Cast<Real> cast_rays(const City& city, const Direction& direction, bool heights = true) {
  return reference::cast<Real>(
      city, ray_steps(direction, {city.rows, city.cols, city.pixel_size_m, city.relief_m()}), heights);
}

}  // namespace lockstep::urban::testing
