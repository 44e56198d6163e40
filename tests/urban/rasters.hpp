// Grids of tests as plain vectors.
#pragma once

#include <utility>
#include <vector>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

inline std::vector<float> values_of(const Array& grid) {
  return {grid.as<float>().begin(), grid.as<float>().end()};
}
inline std::vector<float> values_of(const Raster& grid) { return values_of(grid.values); }

inline Raster raster_of(int64_t rows, int64_t cols, std::vector<float> values) {
  return Raster(Array::of(std::move(values), {rows, cols}));
}

}  // namespace lockstep::urban
