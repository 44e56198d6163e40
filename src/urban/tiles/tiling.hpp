// How a raster that does not fit a device at once is cut into tiles. The rule is stated in docs/urban.md.
#pragma once

#include <cstdint>
#include <vector>

#include "urban/rays/steps.hpp"

namespace lockstep::urban {

/// A part of the raster: its core is computed, its window (core and what rays from it can reach) is read.
struct Tile {
  int64_t row = 0, col = 0, rows = 0, cols = 0;  ///< core
  int64_t window_row = 0, window_col = 0, window_rows = 0,
          window_cols = 0;  ///< core and overlap, inside the raster

  int64_t core_pixels() const { return rows * cols; }
  int64_t window_pixels() const { return window_rows * window_cols; }
};

/// What the choice of a tile's size depends on.
struct TileBudget {
  uint64_t free_bytes = 0;           ///< of the device, or of the host where that is the device
  uint64_t max_buffer_bytes = 0;     ///< longest buffer that a kernel may see
  uint64_t window_bytes = 0;         ///< bytes a window pixel over all buffers of one tile
  uint64_t core_bytes = 0;           ///< bytes a core pixel
  uint64_t widest_window_bytes = 0;  ///< of the widest buffer
  uint64_t widest_core_bytes = 0;
  int in_flight = 1;  ///< tiles at a time
  int64_t pad = 0;    ///< pixels that buffers add around a window
};

inline constexpr double kUsableMemory = 0.8;  ///< share of the free memory that tiles may take
inline constexpr int64_t kTileGranule = 64;   ///< sides of tiles are multiples of it

/// Side of the cores: the raster's longer side where one tile holds it all; otherwise the largest multiple of
/// 64 that fits the budget. `wanted` > 0 is taken as it is, if it fits. Throws UnsupportedError if no tile
/// fits.
int64_t tile_side(int64_t rows, int64_t cols, const Reach& reach, const TileBudget& budget,
                  int64_t wanted = 0);

/// Bytes that one tile of this side needs at most.
uint64_t tile_bytes(int64_t side, int64_t rows, int64_t cols, const Reach& reach, const TileBudget& budget);

/// Cores of `side`, row by row, that cover the raster once; windows are clamped to the raster.
std::vector<Tile> make_tiles(int64_t rows, int64_t cols, int64_t side, const Reach& reach);

}  // namespace lockstep::urban
