#include "urban/tiles/tiling.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

constexpr uint64_t kWindowValue = sizeof(float);  // of the widest window buffer, and of what is copied to it
constexpr uint64_t kKeptByAllocator = uint64_t{32} << 20;  // glibc maps and unmaps what is larger by itself

/// The largest core and window among the tiles of a side.
struct Largest {
  int64_t core_rows, core_cols, window_rows, window_cols;

  Largest(int64_t side, int64_t rows, int64_t cols, const Reach& reach, int64_t pad)
      : core_rows(std::min(side, rows)),
        core_cols(std::min(side, cols)),
        window_rows(std::min(rows, core_rows + reach.north + reach.south) + 2 * pad),
        window_cols(std::min(cols, core_cols + reach.west + reach.east) + 2 * pad) {}
  uint64_t core() const { return static_cast<uint64_t>(core_rows * core_cols); }
  uint64_t window() const { return static_cast<uint64_t>(window_rows * window_cols); }
};

bool fits(int64_t side, int64_t rows, int64_t cols, const Reach& reach, const TileBudget& budget) {
  const Largest e(side, rows, cols, reach, budget.pad);
  const double in_flight = tiles_in_flight(side, rows, cols, budget);
  const double device = in_flight * static_cast<double>(tile_device_bytes(side, rows, cols, reach, budget));
  const double host = in_flight * static_cast<double>(tile_host_bytes(side, rows, cols, reach, budget));
  const uint64_t longest = std::max(e.window() * kWindowValue, e.core() * budget.cost.widest_core_bytes);
  return (budget.device_is_host || device <= kUsableMemory * static_cast<double>(budget.device_bytes)) &&
         host <= static_cast<double>(budget.host_bytes) && longest <= budget.max_buffer_bytes;
}

std::string size_text(uint64_t bytes) {
  const uint64_t mib = uint64_t{1} << 20;
  return bytes < 10 * mib ? fmt::format("{:.2f} MiB", static_cast<double>(bytes) / static_cast<double>(mib))
                          : fmt::format("{} MiB", bytes / mib);
}

std::string needs(int64_t side, int64_t rows, int64_t cols, const Reach& reach, const TileBudget& budget) {
  const std::string host = size_text(tile_host_bytes(side, rows, cols, reach, budget));
  if (budget.device_is_host) return host;
  return fmt::format("{} of the device and {} of the host",
                     size_text(tile_device_bytes(side, rows, cols, reach, budget)), host);
}

std::string has(const TileBudget& budget) {
  std::string text;
  if (!budget.device_is_host)
    text = fmt::format(
        "{} of the device, ",
        size_text(static_cast<uint64_t>(kUsableMemory * static_cast<double>(budget.device_bytes))));
  return fmt::format("at most {}{} of the host and buffers up to {}", text, size_text(budget.host_bytes),
                     size_text(budget.max_buffer_bytes));
}

}  // namespace

uint64_t tile_device_bytes(int64_t side, int64_t rows, int64_t cols, const Reach& reach,
                           const TileBudget& budget) {
  const Largest e(side, rows, cols, reach, budget.pad);
  return e.window() * budget.cost.window_bytes + e.core() * budget.cost.core_bytes;
}

uint64_t tile_host_bytes(int64_t side, int64_t rows, int64_t cols, const Reach& reach,
                         const TileBudget& budget) {
  const Largest e(side, rows, cols, reach, budget.pad);
  // A grid is assembled for its upload and let go before the first page of a result is written; the allocator may
  // keep its memory. What a CPU device rounds its buffers up by is never touched.
  const uint64_t grid = e.window() * kWindowValue, result = e.core() * budget.cost.host_core_bytes;
  const uint64_t part = e.window() * budget.cost.host_window_bytes;
  const uint64_t own = part + std::max(grid, result + std::min(grid, kKeptByAllocator));
  return own + (budget.device_is_host ? tile_device_bytes(side, rows, cols, reach, budget) : 0);
}

int tiles_in_flight(int64_t side, int64_t rows, int64_t cols, const TileBudget& budget) {
  return side >= std::max(rows, cols) ? 1 : budget.in_flight;
}

int64_t tile_side(int64_t rows, int64_t cols, const Reach& reach, const TileBudget& budget, int64_t wanted,
                  int64_t kept) {
  const int64_t whole = std::max(rows, cols);
  if (wanted < 0)
    throw InputError(fmt::format("tile side {}", wanted), "tile", "a positive number of pixels");
  if (wanted > 0) {
    const int64_t side = std::min(wanted, whole);
    if (fits(side, rows, cols, reach, budget)) return side;
    throw UnsupportedError(
        fmt::format("tile of {} pixels needs {}, {} at a time", side, needs(side, rows, cols, reach, budget),
                    tiles_in_flight(side, rows, cols, budget)),
        "tile", has(budget));
  }
  if (kept > 0 && fits(std::min(kept, whole), rows, cols, reach, budget)) return std::min(kept, whole);
  if (fits(whole, rows, cols, reach, budget)) return whole;
  int64_t low = 0, high = whole / kTileGranule + 1;  // in granules: low fits (or is 0), high does not
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (fits(middle * kTileGranule, rows, cols, reach, budget) ? low : high) = middle;
  }
  if (low == 0) {
    UnsupportedError error(
        fmt::format("smallest tile needs {}", needs(kTileGranule, rows, cols, reach, budget)), "tile",
        has(budget));
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
  Tile room;
  for (const Tile& t : tiles) {
    room.room_rows = std::max(room.room_rows, t.rows);
    room.room_cols = std::max(room.room_cols, t.cols);
    room.room_window_rows = std::max(room.room_window_rows, t.window_rows);
    room.room_window_cols = std::max(room.room_window_cols, t.window_cols);
  }
  for (Tile& t : tiles) {
    t.room_rows = room.room_rows;
    t.room_cols = room.room_cols;
    t.room_window_rows = room.room_window_rows;
    t.room_window_cols = room.room_window_cols;
  }
  return tiles;
}

}  // namespace lockstep::urban
