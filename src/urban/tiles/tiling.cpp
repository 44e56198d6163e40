#include "urban/tiles/tiling.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

struct Extent {
  int64_t core_rows, core_cols, window_rows, window_cols;
};

/// The largest core and window among the tiles of a side.
Extent largest(int64_t side, int64_t rows, int64_t cols, const Reach& reach, int64_t pad) {
  Extent e;
  e.core_rows = std::min(side, rows);
  e.core_cols = std::min(side, cols);
  e.window_rows = std::min(rows, e.core_rows + reach.north + reach.south) + 2 * pad;
  e.window_cols = std::min(cols, e.core_cols + reach.west + reach.east) + 2 * pad;
  return e;
}

bool fits(int64_t side, int64_t rows, int64_t cols, const Reach& reach, const TileBudget& budget) {
  const Extent e = largest(side, rows, cols, reach, budget.pad);
  const double window = static_cast<double>(e.window_rows) * static_cast<double>(e.window_cols);
  const double core = static_cast<double>(e.core_rows) * static_cast<double>(e.core_cols);
  const int in_flight = side >= std::max(rows, cols) ? 1 : budget.in_flight;
  const double all = static_cast<double>(tile_bytes(side, rows, cols, reach, budget)) * in_flight;
  const double longest = std::max(window * static_cast<double>(budget.widest_window_bytes),
                                  core * static_cast<double>(budget.widest_core_bytes));
  return all <= kUsableMemory * static_cast<double>(budget.free_bytes) &&
         longest <= static_cast<double>(budget.max_buffer_bytes);
}

}  // namespace

uint64_t tile_bytes(int64_t side, int64_t rows, int64_t cols, const Reach& reach, const TileBudget& budget) {
  const Extent e = largest(side, rows, cols, reach, budget.pad);
  return static_cast<uint64_t>(e.window_rows * e.window_cols) * budget.window_bytes +
         static_cast<uint64_t>(e.core_rows * e.core_cols) * budget.core_bytes;
}

int64_t tile_side(int64_t rows, int64_t cols, const Reach& reach, const TileBudget& budget, int64_t wanted) {
  const int64_t whole = std::max(rows, cols);
  if (wanted < 0)
    throw InputError(fmt::format("tile side {}", wanted), "tile", "a positive number of pixels");
  if (wanted > 0) {
    const int64_t side = std::min(wanted, whole);
    if (fits(side, rows, cols, reach, budget)) return side;
    throw UnsupportedError(fmt::format("tile of {} pixels needs {} MiB, {} at a time", side,
                                       tile_bytes(side, rows, cols, reach, budget) >> 20, budget.in_flight),
                           "tile", fmt::format("at most {} MiB free", budget.free_bytes >> 20));
  }
  if (fits(whole, rows, cols, reach, budget)) return whole;
  int64_t low = 0, high = whole / kTileGranule + 1;  // in granules: low fits (or is 0), high does not
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (fits(middle * kTileGranule, rows, cols, reach, budget) ? low : high) = middle;
  }
  if (low == 0) {
    UnsupportedError error(
        fmt::format("smallest tile needs {} MiB", tile_bytes(kTileGranule, rows, cols, reach, budget) >> 20),
        "tile",
        fmt::format("at most {} MiB free and buffers up to {} MiB", budget.free_bytes >> 20,
                    budget.max_buffer_bytes >> 20));
    error.with_hint("a shorter longest reach of rays makes tiles smaller");
    throw error;
  }
  return low * kTileGranule;
}

std::vector<Tile> make_tiles(int64_t rows, int64_t cols, int64_t side, const Reach& reach) {
  if (side < 1) throw InputError(fmt::format("tile side {}", side), "tile", "a positive number of pixels");
  std::vector<Tile> tiles;
  for (int64_t row = 0; row < rows; row += side)
    for (int64_t col = 0; col < cols; col += side) {
      Tile t;
      t.row = row;
      t.col = col;
      t.rows = std::min(side, rows - row);
      t.cols = std::min(side, cols - col);
      t.window_row = std::max<int64_t>(0, row - reach.north);
      t.window_col = std::max<int64_t>(0, col - reach.west);
      t.window_rows = std::min(rows, row + t.rows + reach.south) - t.window_row;
      t.window_cols = std::min(cols, col + t.cols + reach.east) - t.window_col;
      tiles.push_back(t);
    }
  return tiles;
}

}  // namespace lockstep::urban
