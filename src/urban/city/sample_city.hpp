// A made-up city for trials and pictures: streets, courtyards, pitched roofs, a tower, a park, rows of trees.
#pragma once

#include <cstdint>
#include <functional>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

struct SampleCityOptions {
  int64_t rows = 512;
  int64_t cols = 512;
  double pixel_size_m = 1.0;
  uint64_t seed = 1;
};

/// The same options give the same city on every machine. Heights: DSM and DEM absolute, canopies above
/// ground. `on_progress` receives the number of finished rows. Throws InputError for sizes below 1 or a pixel
/// size outside 0.05 … 50 m.
CityInput make_sample_city(const SampleCityOptions& options = {},
                           const std::function<void(int64_t done, int64_t total)>& on_progress = {});

}  // namespace lockstep::urban
