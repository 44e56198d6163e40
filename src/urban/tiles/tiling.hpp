// How a raster that does not fit the memory at once is cut into tiles. The rule is stated in docs/urban.md.
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
  /// Largest core and window of all tiles: buffers are allocated for them, so that each tile takes over the
  /// memory of the one before.
  int64_t room_rows = 0, room_cols = 0, room_window_rows = 0, room_window_cols = 0;

  int64_t core_pixels() const { return rows * cols; }
  int64_t window_pixels() const { return window_rows * window_cols; }
};

/// Bytes that one tile needs.
struct TileCost {
  uint64_t window_bytes = 0;       ///< on the device, a padded window pixel
  uint64_t core_bytes = 0;         ///< on the device, a core pixel
  uint64_t widest_core_bytes = 0;  ///< of the widest device buffer, a core pixel
  uint64_t host_core_bytes = 0;    ///< on the host, a core pixel: the result
  uint64_t host_window_bytes = 0;  ///< on the host, a window pixel: the part of a city that is not held
};

/// The numbers that decide on a tile's size.
struct TileBudget {
  TileCost cost;
  uint64_t device_bytes = 0;      ///< free memory of the device; unused where that is the host's
  uint64_t host_bytes = 0;        ///< host memory that all tiles in flight may take
  uint64_t max_buffer_bytes = 0;  ///< longest buffer that a kernel may see
  bool device_is_host = false;
  int in_flight = 1;  ///< tiles at a time
  int64_t pad = 0;    ///< pixels that buffers add around a window
};

inline constexpr double kUsableMemory = 0.8;  ///< share of the free memory that tiles may take
inline constexpr int64_t kTileGranule = 64;   ///< sides of tiles are multiples of it

/// Side of the cores: the raster's longer side where one tile holds it all; otherwise the largest multiple of
/// 64 that fits the budget. `wanted` > 0 is taken as it is and must fit; `kept` > 0 is taken if it fits.
/// Throws UnsupportedError if no tile fits.
int64_t tile_side(int64_t rows, int64_t cols, const Reach& reach, const TileBudget& budget,
                  int64_t wanted = 0, int64_t kept = 0);

/// Bytes that one tile of this side needs at most, on the device and on the host.
uint64_t tile_device_bytes(int64_t side, int64_t rows, int64_t cols, const Reach& reach,
                           const TileBudget& budget);
uint64_t tile_host_bytes(int64_t side, int64_t rows, int64_t cols, const Reach& reach,
                         const TileBudget& budget);
/// Tiles in flight for a side: one where a tile holds all.
int tiles_in_flight(int64_t side, int64_t rows, int64_t cols, const TileBudget& budget);

/// Cores of `side`, row by row, that cover the raster once; windows are clamped to the raster.
std::vector<Tile> make_tiles(int64_t rows, int64_t cols, int64_t side, const Reach& reach);

}  // namespace lockstep::urban
