// Which Fourier modes a model keeps, and on how many points its products are taken.
#pragma once

#include "lockstep/flow.hpp"

namespace lockstep::flow {

inline constexpr double kPi = std::numbers::pi;

/// Modes |ix| <= kept_x, |iy| <= kept_y; a spectrum has rows iy = 0 … kept_y, -kept_y … -1 and columns
/// ix = 0 … kept_x. The mode of half the points is never kept: it has no odd derivative.
struct Modes {
  int64_t kept_x = 0, kept_y = 0;
  int64_t points_x = 0, points_y = 0;  // of products
  int64_t rows() const { return 2 * kept_y + 1; }
  int64_t columns() const { return kept_x + 1; }
  int64_t count() const { return rows() * columns(); }
  int64_t iy(int64_t row) const { return row <= kept_y ? row : row - rows(); }
  int64_t row_of(int64_t y) const { return y < 0 ? y + rows() : y; }
};

inline Modes modes_of(const BoxGrid& grid, Dealias dealias) {
  if (dealias == Dealias::two_thirds) return {(grid.nx - 1) / 3, (grid.ny - 1) / 3, grid.nx, grid.ny};
  Modes modes{(grid.nx - 1) / 2, (grid.ny - 1) / 2, grid.nx, grid.ny};
  if (dealias == Dealias::padded) {
    modes.points_x = (3 * grid.nx / 2 + 1) / 2 * 2;
    modes.points_y = (3 * grid.ny / 2 + 1) / 2 * 2;
  }
  return modes;
}
inline Modes modes_of(const Model& model) { return modes_of(model.grid, model.dealias); }

}  // namespace lockstep::flow
