// Cities for tests and cases: the same for a seed on every machine.
#pragma once

#include "lockstep/urban.hpp"

namespace lockstep::urban {

struct RandomCityOptions {
  bool vegetation = true;
  double pixel_size_m = 1.0;
  double missing_share = 0.0;  ///< of pixels without a height
};

/// Blocks of 8 to 30 m, trees and bushes of 2 to 15 m on ground uneven by half a metre.
CityInput random_city(int64_t rows, int64_t cols, uint64_t seed, const RandomCityOptions& options = {});

/// `city` and its mirror images side by side, cut to rows × cols.
CityInput mirrored_city(const CityInput& city, int64_t rows, int64_t cols);

}  // namespace lockstep::urban
