#include "urban/tiles/tiling.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TileBudget budget(uint64_t free_bytes, int in_flight = 1) {
  TileBudget b;
  b.free_bytes = free_bytes;
  b.max_buffer_bytes = 1ull << 40;
  b.window_bytes = 24;
  b.core_bytes = 100;
  b.widest_window_bytes = 4;
  b.widest_core_bytes = 40;
  b.in_flight = in_flight;
  return b;
}

TEST(Tiles, CoverTheRasterOnce) {
  for (auto [rows, cols, side] :
       {std::array<int64_t, 3>{1, 1, 64}, {100, 37, 16}, {64, 64, 64}, {5, 700, 100}}) {
    const Reach reach{3, 7, 11, 2};
    std::vector<int> covered(static_cast<size_t>(rows * cols), 0);
    for (const Tile& t : make_tiles(rows, cols, side, reach)) {
      for (int64_t r = t.row; r < t.row + t.rows; ++r)
        for (int64_t c = t.col; c < t.col + t.cols; ++c) ++covered[static_cast<size_t>(r * cols + c)];
      EXPECT_EQ(t.window_row, std::max<int64_t>(0, t.row - 3));
      EXPECT_EQ(t.window_col, std::max<int64_t>(0, t.col - 11));
      EXPECT_EQ(t.window_row + t.window_rows, std::min(rows, t.row + t.rows + 7));
      EXPECT_EQ(t.window_col + t.window_cols, std::min(cols, t.col + t.cols + 2));
    }
    EXPECT_TRUE(std::all_of(covered.begin(), covered.end(), [](int n) { return n == 1; }));
  }
}

TEST(TileSide, WholeRasterWhereItFits) {
  EXPECT_EQ(tile_side(700, 300, {50, 50, 50, 50}, budget(1000 * kMiB)), 700);
}

TEST(TileSide, LargestGranuleThatFits) {
  const Reach reach{100, 100, 100, 100};
  for (uint64_t mib : {64u, 256u, 1024u}) {
    const TileBudget b = budget(mib * kMiB, 2);
    const int64_t side = tile_side(20000, 20000, reach, b);
    EXPECT_EQ(side % kTileGranule, 0);
    const double usable = kUsableMemory * static_cast<double>(b.free_bytes);
    EXPECT_LE(2.0 * static_cast<double>(tile_bytes(side, 20000, 20000, reach, b)), usable);
    EXPECT_GT(2.0 * static_cast<double>(tile_bytes(side + kTileGranule, 20000, 20000, reach, b)), usable);
  }
}

TEST(TileSide, LongestBufferBounds) {
  TileBudget b = budget(100000 * kMiB);
  b.max_buffer_bytes = 128 * kMiB;  // as a WebGPU binding
  const int64_t side = tile_side(8192, 8192, {}, b);
  EXPECT_LE(static_cast<uint64_t>(side * side) * b.widest_core_bytes, b.max_buffer_bytes);
  EXPECT_GT(static_cast<uint64_t>((side + 64) * (side + 64)) * b.widest_core_bytes, b.max_buffer_bytes);
}

TEST(TileSide, MoreMemoryNeverGivesSmallerTiles) {
  int64_t last = 0;
  for (uint64_t mib = 64; mib <= 4096; mib *= 2) {
    const int64_t side = tile_side(8192, 8192, {500, 500, 500, 500}, budget(mib * kMiB));
    EXPECT_GE(side, last);
    last = side;
  }
  EXPECT_EQ(tile_side(8192, 8192, {500, 500, 500, 500}, budget(1ull << 40)), 8192);
}

TEST(TileSide, WantedSideIsTakenIfItFits) {
  EXPECT_EQ(tile_side(1000, 1000, {}, budget(1000 * kMiB), 100), 100);
  EXPECT_EQ(tile_side(1000, 1000, {}, budget(1000 * kMiB), 5000), 1000);
  EXPECT_THROW(tile_side(1000, 1000, {}, budget(1 * kMiB), 900), UnsupportedError);
  EXPECT_THROW(tile_side(1000, 1000, {}, budget(1000 * kMiB), -1), InputError);
}

TEST(TileSide, SaysWhenNothingFits) {
  try {
    tile_side(4000, 4000, {2000, 2000, 2000, 2000}, budget(1 * kMiB));
    FAIL() << "no tile fits into 1 MiB";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("smallest tile needs"), std::string::npos);
    EXPECT_FALSE(error.hint().empty());
  }
}

}  // namespace
}  // namespace lockstep::urban
