#include "urban/rays/steps.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

TEST(RaySteps, CardinalDirections) {
  const RayBounds bounds{100, 100, 2.0, 6.5};
  struct Case {
    double azimuth;
    int64_t drow, dcol;
  };
  for (const Case& c : {Case{0, -1, 0}, Case{90, 0, 1}, Case{180, 1, 0}, Case{270, 0, -1}, Case{360, -1, 0},
                        Case{-90, 0, -1}}) {
    const auto steps = ray_steps({c.azimuth, 45}, bounds);
    ASSERT_EQ(steps.size(), 5u) << "rises 0 2 4 6 and one above the relief";
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i].drow, c.drow * static_cast<int64_t>(i));
      EXPECT_EQ(steps[i].dcol, c.dcol * static_cast<int64_t>(i));
      EXPECT_NEAR(steps[i].rise_m, 2.0 * static_cast<double>(i), 1e-12);
    }
  }
}

TEST(RaySteps, DiagonalMovesOneRowAndColumnAStep) {
  const auto steps = ray_steps({135, 30}, {50, 50, 1.0, 1000});
  ASSERT_EQ(steps.size(), 51u);  // the step that leaves the raster is the last
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].drow, static_cast<int64_t>(i));
    EXPECT_EQ(steps[i].dcol, static_cast<int64_t>(i));
    EXPECT_NEAR(steps[i].rise_m, static_cast<double>(i) * std::sqrt(2.0) * std::tan(std::numbers::pi / 6),
                1e-12);
  }
}

TEST(RaySteps, ReachIsMonotonous) {
  for (double azimuth = 0; azimuth < 360; azimuth += 7.3) {
    const auto steps = ray_steps({azimuth, 6}, {300, 200, 1.0, 40});
    for (size_t i = 1; i < steps.size(); ++i) {
      EXPECT_GE(std::abs(steps[i].drow), std::abs(steps[i - 1].drow));
      EXPECT_GE(std::abs(steps[i].dcol), std::abs(steps[i - 1].dcol));
      EXPECT_LE(std::abs(steps[i].drow - steps[i - 1].drow), 1);
      EXPECT_LE(std::abs(steps[i].dcol - steps[i - 1].dcol), 1);
      EXPECT_GT(steps[i].rise_m, steps[i - 1].rise_m);
    }
  }
}

TEST(RaySteps, ZenithLooksAtItselfAndItsNorthernNeighbour) {
  const auto steps = ray_steps({0, 90}, {50, 50, 1.0, 100});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].rise_m, 0);
  EXPECT_EQ(steps[1].drow, -1);
  EXPECT_EQ(steps[1].dcol, 0);
  EXPECT_GT(steps[1].rise_m, 1e15);
}

TEST(RaySteps, FlatTerrainAndLongestReach) {
  EXPECT_EQ(ray_steps({200, 30}, {50, 50, 1.0, 0}).size(), 2u);
  RayBounds bounds{500, 500, 1.0, 1000};
  bounds.max_reach_m = 10;
  const auto steps = ray_steps({90, 5}, bounds);
  ASSERT_EQ(steps.size(), 12u);
  EXPECT_EQ(steps.back().dcol, 11);
}

TEST(RaySteps, ReachOfSteps) {
  Reach reach = reach_of(ray_steps({0, 45}, {100, 100, 1.0, 5}));
  EXPECT_EQ(reach.north, 6);
  EXPECT_EQ(reach.south + reach.east + reach.west, 0);
  reach.include(reach_of(ray_steps({225, 45}, {100, 100, 1.0, 5})));
  EXPECT_EQ(reach.north, 6);
  EXPECT_EQ(reach.south, 4);
  EXPECT_EQ(reach.west, 4);
}

TEST(RaySteps, RefusesTheNight) {
  const RayBounds bounds{10, 10, 1.0, 5};
  for (double altitude : {0.0, -5.0, 90.5, std::nan("")})
    EXPECT_THROW(ray_steps({180, altitude}, bounds), InputError);
  EXPECT_THROW(ray_steps({std::nan(""), 30}, bounds), InputError);
}

}  // namespace
}  // namespace lockstep::urban
