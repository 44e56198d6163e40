#include <gtest/gtest.h>

#include <cmath>

#include "urban/scenes.hpp"

namespace lockstep::urban {
namespace {

TEST(WallTemplatesTest, SideFollowsThePixelSize) {
  EXPECT_EQ(wall_template_side(1.0, WallFilter::metres), 9);
  EXPECT_EQ(wall_template_side(2.0, WallFilter::metres), 5);
  EXPECT_EQ(wall_template_side(0.5, WallFilter::metres), 19);
  EXPECT_EQ(wall_template_side(4.0, WallFilter::metres), 3);
  EXPECT_EQ(wall_template_side(20.0, WallFilter::metres), 3);
  EXPECT_EQ(wall_template_side(3.0, WallFilter::metres), 3);
  for (double px : {0.5, 1.0, 20.0}) EXPECT_EQ(wall_template_side(px, WallFilter::pixels), 9);
}

TEST(WallTemplatesTest, APixelIsForcedInThePublishedSizeOnly) {
  // 3, 5, 7 and 13 as SciPy's rotation rounds the half-way case, which published tools use.
  for (const auto& [n, on_line] : {std::pair{3, 1}, {5, 1}, {7, 0}, {9, 1}, {13, 0}}) {
    const WallTemplates t = wall_templates(n);
    const size_t row = 60 * static_cast<size_t>(n * n) + static_cast<size_t>(n / 2 * n);
    EXPECT_EQ(t.lines[row + static_cast<size_t>(n / 2 - 1)], on_line) << n;
    EXPECT_EQ(t.lines[row + static_cast<size_t>(n / 2 + 1)], 0) << n;
  }
}

TEST(WallTemplatesTest, TheMiddleOfARunOfAngles) {
  const auto run = [](std::initializer_list<int> best) {
    std::vector<int> counts(kWallAngles, 3);
    for (int angle : best) counts[static_cast<size_t>(angle)] = 7;
    return best_angles(counts);
  };
  EXPECT_EQ(run({40}).middle(), 40);
  EXPECT_EQ(run({40, 41, 42}).middle(), 41);
  EXPECT_EQ(run({40, 41}).middle(), 40.5);
  EXPECT_EQ(run({40, 41}).nearest(), 40);
  EXPECT_EQ(run({10, 11, 90, 91, 92}).middle(), 10.5) << "the first run";
  EXPECT_EQ(run({178, 179}).middle(), 178.5);
  EXPECT_EQ(run({0, 1, 2, 178, 179}).middle(), 0) << "179 and 0 are neighbours";
  EXPECT_EQ(run({0, 1, 177, 178, 179}).middle(), 179);
  EXPECT_EQ(run({0, 1, 177, 178, 179}).nearest(), 179);
  EXPECT_EQ(best_angles(std::vector<int>(kWallAngles, 1)).last, 179);
}

TEST(WallTemplatesTest, UprightAndTurned) {
  for (double px : {0.5, 1.0, 2.0, 4.0}) {
    const WallTemplates t = wall_templates(wall_template_side(px, WallFilter::metres));
    const int n = t.side;
    const size_t area = static_cast<size_t>(n * n);
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j) {
        EXPECT_EQ(t.lines[static_cast<size_t>(k * n + j)], j == n / 2);
        EXPECT_EQ(t.lines[90 * area + static_cast<size_t>(k * n + j)], k == n / 2);
        EXPECT_EQ(t.lines[45 * area + static_cast<size_t>(k * n + j)], k == j)
            << "270 - 45 = 225: both corners";
      }
    for (int h = 0; h < kWallAngles; ++h) {
      EXPECT_EQ(t.lines[static_cast<size_t>(h) * area + area / 2], 1) << h;
      for (size_t k = 0; k < area; ++k) EXPECT_LE(t.sides[static_cast<size_t>(h) * area + k], 2);
    }
    for (int k = 0; k < n; ++k) {
      EXPECT_EQ(t.sides[30 * area + static_cast<size_t>(k * n + n - 1)], 0);
      EXPECT_EQ(t.sides[150 * area + static_cast<size_t>(k * n + n - 1)], 0);
    }
  }
}

TEST(WallTemplatesTest, Directions) {
  EXPECT_EQ(wall_direction(0, false), 270);
  EXPECT_EQ(wall_direction(0, true), 90);
  EXPECT_EQ(wall_direction(90, false), 180);
  EXPECT_EQ(wall_direction(90, true), 0);
  EXPECT_EQ(wall_direction(179, true), 271);
}

/// A block of 20 × 20 pixels, 10 m high, in the middle of 60 × 60.
City block(double pixel_size_m = 1) {
  CityInput input;
  input.pixel_size_m = pixel_size_m;
  input.dsm = Raster(60, 60, 2.0f);
  for (int r = 20; r < 40; ++r)
    for (int c = 20; c < 40; ++c) input.dsm.at(r, c) = 12.0f;
  return prepare_city(input);
}

TEST(Walls, StandJustOutsideABlockAndFaceAwayFromIt) {
  const City city = block();
  const auto walls = reference::wall_height<float>(city, 3.0);
  const auto aspect = reference::wall_aspect<float>(city, walls);
  WallOptions first;
  first.ties = WallTies::first;
  const auto published = reference::wall_aspect<float>(city, walls, first);
  int count = 0;
  for (float w : walls) count += w > 0;
  EXPECT_EQ(count, 80);
  const auto at = [](int r, int c) { return static_cast<size_t>(r * 60 + c); };
  for (int k = 25; k < 35; ++k) {
    EXPECT_EQ(walls[at(19, k)], 10.0f);
    EXPECT_EQ(aspect[at(19, k)], 0.0f) << "northern wall";
    EXPECT_EQ(aspect[at(40, k)], 180.0f);
    EXPECT_EQ(aspect[at(k, 19)], 270.0f);
    EXPECT_EQ(aspect[at(k, 40)], 90.0f);
    // Lines turned by 83…97° cover the same nine pixels of a row; as published, the first angle counts.
    EXPECT_EQ(published[at(19, k)], 7.0f);
    EXPECT_EQ(published[at(40, k)], 187.0f);
    EXPECT_EQ(published[at(k, 19)], 270.0f);
    EXPECT_EQ(published[at(k, 40)], 90.0f);
  }
  EXPECT_EQ(walls[at(20, 20)], 0.0f);
  for (float w : reference::wall_height<float>(city, 10.5)) EXPECT_EQ(w, 0.0f);
  for (float w : reference::wall_height<float>(city, 10.0)) EXPECT_TRUE(w == 0.0f || w == 10.0f);
}

TEST(Walls, FacesOfABlockHaveNoBiasAtAnyPixelSize) {
  for (double px : {0.5, 1.0, 2.0, 5.0})
    for (WallFilter filter : {WallFilter::metres, WallFilter::pixels}) {
      WallOptions options;
      options.filter = filter;
      const City city = block(px);
      const auto aspect =
          reference::wall_aspect<float>(city, reference::wall_height<float>(city, 3.0), options);
      const auto at = [](int r, int c) { return static_cast<size_t>(r * 60 + c); };
      EXPECT_EQ(aspect[at(19, 30)], 0.0f) << px;
      EXPECT_EQ(aspect[at(30, 40)], 90.0f) << px;
      EXPECT_EQ(aspect[at(40, 30)], 180.0f) << px;
      EXPECT_EQ(aspect[at(30, 19)], 270.0f) << px;
    }
}

TEST(Walls, SunlitFromTheSunsSideOnly) {
  const City city = block();
  const auto walls = reference::wall_height<float>(city, 3.0);
  const auto aspect = reference::wall_aspect<float>(city, walls);
  const auto south =
      reference::shade_walls<float>(city, testing::cast_rays(city, {180, 40}), walls, aspect, 180);
  const auto at = [](int r, int c) { return static_cast<size_t>(r * 60 + c); };
  for (int k = 25; k < 35; ++k) {
    EXPECT_EQ(south.sun[at(40, k)], 10.0f);
    EXPECT_EQ(south.shadow[at(40, k)], 0.0f);
    EXPECT_EQ(south.sun[at(19, k)], 0.0f);
    EXPECT_EQ(south.shadow[at(19, k)], 10.0f);
  }
  for (size_t p = 0; p < walls.size(); ++p) EXPECT_EQ(south.sun[p] + south.shadow[p], walls[p]);
}

TEST(Walls, AWallInTheShadeOfAnother) {
  CityInput input;
  input.dsm = Raster(60, 60, 0.0f);
  for (int r = 10; r < 20; ++r)
    for (int c = 5; c < 55; ++c) input.dsm.at(r, c) = 20.0f;
  for (int r = 30; r < 32; ++r)
    for (int c = 5; c < 55; ++c) input.dsm.at(r, c) = 12.0f;
  const City city = prepare_city(input);
  const auto walls = reference::wall_height<float>(city, 3.0);
  const auto aspect = reference::wall_aspect<float>(city, walls);
  const auto sun =
      reference::shade_walls<float>(city, testing::cast_rays(city, {180, 45}), walls, aspect, 180);
  // The southern wall at row 20 faces the northern wall 10 pixels away: its lowest 2 m are in shade.
  const size_t p = 20 * 60 + 30;
  EXPECT_EQ(walls[p], 20.0f);
  EXPECT_NEAR(sun.shadow[p], 2.0f, 1e-5f);
  EXPECT_NEAR(sun.sun[p], 18.0f, 1e-5f);
}

TEST(Walls, FacingTheSunAtEveryBranch) {
  constexpr double degree = std::numbers::pi / 180;
  for (double azimuth : {5.0, 45.0, 89.0, 91.0, 180.0, 269.0, 271.0, 355.0})
    for (int aspect = 0; aspect < 360; ++aspect) {
      double apart = std::abs(aspect - azimuth);
      apart = std::min(apart, 360 - apart);
      if (std::abs(apart - 90) < 0.5) continue;
      EXPECT_EQ(reference::faces_away<double>(aspect * degree, true, azimuth * degree), apart > 90)
          << "sun " << azimuth << " wall " << aspect;
    }
}

TEST(Walls, MissingPixelsHaveNoWall) {
  CityInput input;
  input.dsm = Raster(9, 9, 2.0f);
  for (int r = 3; r < 6; ++r)
    for (int c = 3; c < 6; ++c) input.dsm.at(r, c) = std::numeric_limits<float>::quiet_NaN();
  const auto walls = reference::wall_height<float>(prepare_city(input), 1.0);
  for (float w : walls) EXPECT_EQ(w, 0.0f);
}

}  // namespace
}  // namespace lockstep::urban
