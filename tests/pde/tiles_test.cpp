// Tiles of the sweeps by the grid: those that were measured on an H200, where shared memory holds them.
#include <gtest/gtest.h>

#include "pde/fused/levels.hpp"
#include "pde/halves/two_sweeps.hpp"
#include "pde/language/discretisation.hpp"
#include "pde/problems.hpp"

namespace lockstep::pde {
namespace {

using Tile = std::array<int, 4>;  // lanes along x and y, rows of a lane, groups of a multiprocessor

struct Grid {
  std::array<int64_t, 3> cells;
  const char* boundary = "periodic";
  int order = 2;
};
Discretisation grid_of(const Grid& grid) {
  return {transport(3).plan(), testing::mesh_of(grid.cells, grid.boundary, grid.order)};
}

Device device_with(int64_t shared_bytes) {
  return Device::open("cpu", {.lower_limits = [=](Limits& limits) { limits.shared_bytes = shared_bytes; }});
}
const int64_t kShared = 227 << 10;  // of an H200

std::vector<FieldLevel> outputs_of(int count) {
  std::vector<FieldLevel> outputs;
  for (int k = 0; k < count; ++k) outputs.push_back({k % 2, k / 2 - 1});
  return outputs;
}

TEST(PdeTiles, OfTheFusedKernelFollowTheGrid) {
  const Device device = device_with(kShared);
  const auto tile = [&](const Grid& grid, int outputs) {
    const FusedShape s = choose_shape(grid_of(grid), device, {}, outputs_of(outputs), 1, {});
    return Tile{s.x, s.y, s.rows, s.blocks};
  };
  const Tile small{32, 4, 1, 4}, low{32, 4, 2, 2}, middle{64, 4, 2, 2}, lean{64, 8, 2, 1}, tall{64, 4, 4, 1},
      steep{64, 8, 1, 1}, broad{128, 2, 4, 1};
  EXPECT_EQ(tile({{64, 64, 64}}, 6), small);
  EXPECT_EQ(tile({{64, 64, 64}, "y=clamp"}, 6), low);
  EXPECT_EQ(tile({{120, 120, 120}}, 6), middle);
  EXPECT_EQ(tile({{120, 120, 120}}, 3), middle);
  EXPECT_EQ(tile({{120, 120, 120}}, 2), lean);
  EXPECT_EQ(tile({{120, 120, 120}, "z=clamp"}, 2), tall);
  EXPECT_EQ(tile({{192, 192, 192}}, 6), tall);
  EXPECT_EQ(tile({{192, 192, 192}}, 0), lean);
  EXPECT_EQ(tile({{256, 160, 160}}, 6), broad);
  EXPECT_EQ(tile({{256, 160, 160}, "x=clamp"}, 0), broad);
  EXPECT_EQ(tile({{64, 64, 64}, "periodic", 4}, 6), small);
  EXPECT_EQ(tile({{120, 120, 120}, "periodic", 4}, 6), steep);
}

TEST(PdeTiles, ATileThatSharedMemoryDoesNotHoldGivesWayToTheNext) {
  const Device little = device_with(30 << 10);
  const FusedShape s = choose_shape(grid_of({{256, 160, 160}}), little, {}, outputs_of(6), 1, {});
  EXPECT_EQ((Tile{s.x, s.y, s.rows, s.blocks}), (Tile{32, 4, 1, 4}));
  EXPECT_EQ(fused_refusal(grid_of({{256, 160, 160}}), device_with(1 << 10), {}), "too little shared memory");
}

TEST(PdeTiles, OfTheTwoSweepsFollowTheGrid) {
  const Device device = device_with(kShared);
  const auto tile = [&](int64_t n) {
    const HalfShape s =
        choose_half(grid_of({{n, n, n}}), device, {}, SweepHalf::residual, outputs_of(6), 1, true, {});
    return Tile{s.x, s.y, s.rows, s.blocks};
  };
  EXPECT_EQ(tile(72), (Tile{32, 8, 1, 2}));
  EXPECT_EQ(tile(80), (Tile{32, 8, 2, 1}));
  EXPECT_EQ(tile(160), (Tile{32, 4, 1, 4}));
  EXPECT_EQ(tile(224), (Tile{64, 4, 2, 1}));
}

TEST(PdeTiles, ASweepOfATrajectoryTakesAsManyLevelsAsFit) {
  const auto levels = [](const Grid& grid, int64_t shared, int64_t most = 30) {
    const LevelShape s = choose_levels(grid_of(grid), device_with(shared), {}, {0, 1}, most, {});
    return std::array<int, 4>{s.levels, s.options.tile_x, s.options.tile_y, s.options.tile_rows};
  };
  const int64_t enough = 1 << 20;
  EXPECT_EQ(levels({{128, 128, 128}}, enough), (std::array{5, 32, 8, 1}));
  EXPECT_EQ(levels({{128, 128, 128}}, enough, 3), (std::array{3, 32, 8, 1}));
  EXPECT_EQ(levels({{128, 128, 128}, "x=clamp"}, enough), (std::array{4, 32, 8, 1}));
  EXPECT_EQ(levels({{192, 192, 192}, "x=clamp"}, enough), (std::array{2, 64, 4, 2}));
  EXPECT_LT(levels({{128, 128, 128}}, 64 << 10)[0], 5);
  EXPECT_THROW(levels({{128, 128, 128}}, 1 << 10), UnsupportedError);
}

}  // namespace
}  // namespace lockstep::pde
