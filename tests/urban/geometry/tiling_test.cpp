#include "urban/tiles/tiling.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

constexpr uint64_t kMiB = 1 << 20;

/// Of a GPU, with memory of the host to spare.
TileBudget budget(uint64_t device_bytes, int in_flight = 1) {
  TileBudget b;
  b.cost = {24, 100, 40, 60};
  b.device_bytes = device_bytes;
  b.host_bytes = 1ull << 40;
  b.max_buffer_bytes = 1ull << 40;
  b.in_flight = in_flight;
  return b;
}

/// Of the CPU, whose memory is the host's.
TileBudget host_budget(uint64_t host_bytes) {
  TileBudget b = budget(0);
  b.device_is_host = true;
  b.host_bytes = host_bytes;
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
    const double usable = kUsableMemory * static_cast<double>(b.device_bytes);
    const auto needed = [&](int64_t s) {
      return 2.0 * static_cast<double>(tile_device_bytes(s, 20000, 20000, reach, b));
    };
    EXPECT_LE(needed(side), usable);
    EXPECT_GT(needed(side + kTileGranule), usable);
  }
}

TEST(TileSide, LongestBufferBounds) {
  TileBudget b = budget(100000 * kMiB);
  b.max_buffer_bytes = 128 * kMiB;  // as a WebGPU binding
  const int64_t side = tile_side(8192, 8192, {}, b);
  EXPECT_LE(static_cast<uint64_t>(side * side) * b.cost.widest_core_bytes, b.max_buffer_bytes);
  EXPECT_GT(static_cast<uint64_t>((side + 64) * (side + 64)) * b.cost.widest_core_bytes, b.max_buffer_bytes);
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

TEST(TileSide, ResultsOnTheHostCountBesideTheDevice) {
  TileBudget b = budget(1ull << 40);
  b.host_bytes = 64 * kMiB;
  const int64_t side = tile_side(20000, 20000, {}, b);
  EXPECT_LE(tile_host_bytes(side, 20000, 20000, {}, b), b.host_bytes);
  EXPECT_GT(tile_host_bytes(side + kTileGranule, 20000, 20000, {}, b), b.host_bytes);
  const TileBudget cpu = host_budget(64 * kMiB);
  const int64_t cpu_side = tile_side(20000, 20000, {}, cpu);
  EXPECT_LT(cpu_side, side) << "the device's buffers lie in the same memory";
  EXPECT_GE(tile_host_bytes(cpu_side, 20000, 20000, {}, cpu),
            tile_device_bytes(cpu_side, 20000, 20000, {}, cpu) +
                static_cast<uint64_t>(cpu_side * cpu_side) * cpu.cost.host_core_bytes);
}

TEST(TileSide, AKeptSideIsTakenIfItFitsAndNoDemand) {
  const TileBudget much = host_budget(1000 * kMiB), little = host_budget(8 * kMiB);
  EXPECT_EQ(tile_side(1000, 1000, {}, much, 0, 130), 130);
  EXPECT_EQ(tile_side(1000, 1000, {}, much, 100, 130), 100) << "asked for";
  const int64_t side = tile_side(1000, 1000, {}, little, 0, 900);
  EXPECT_EQ(side, tile_side(1000, 1000, {}, little));
  EXPECT_LT(side, 900);
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
