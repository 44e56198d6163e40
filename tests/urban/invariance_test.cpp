// Properties of every city, regardless of the numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "rasters.hpp"
#include "urban/scenes.hpp"

namespace lockstep::urban {
namespace {

using testing::cast_rays;

/// Quarter turn clockwise: what lay north lies east.
Raster turned(const Raster& from) {
  Raster to(from.cols(), from.rows());
  for (int64_t r = 0; r < from.rows(); ++r)
    for (int64_t c = 0; c < from.cols(); ++c) to.at(c, from.rows() - 1 - r) = from.at(r, c);
  if (from.empty()) to = Raster();
  return to;
}
Raster mirrored(const Raster& from) {
  Raster to(from.rows(), from.cols());
  for (int64_t r = 0; r < from.rows(); ++r)
    for (int64_t c = 0; c < from.cols(); ++c) to.at(r, from.cols() - 1 - c) = from.at(r, c);
  return to;
}
template <class F>
CityInput mapped(CityInput city, F map) {
  city.dsm = map(city.dsm);
  city.cdsm = map(city.cdsm);
  city.tdsm = map(city.tdsm);
  return city;
}
Raster states(const CityInput& input, const Direction& direction) {
  const City city = prepare_city(input);
  const auto rays = cast_rays(city, direction);
  Raster out(city.rows, city.cols);
  for (size_t p = 0; p < rays.state.size(); ++p) out.pixels()[p] = static_cast<float>(rays.state[p]);
  return out;
}

/// Directions whose rounding has no ties and no switch of the dominant axis nearby.
constexpr double kAzimuths[] = {0, 17.3, 90, 121.7, 200.4, 270, 301.9, 349};

TEST(Invariance, QuarterTurn) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const CityInput city = random_city(53, 71, seed);
    for (double azimuth : kAzimuths)
      EXPECT_EQ(values_of(turned(states(city, {azimuth, 25}))),
                values_of(states(mapped(city, turned), {azimuth + 90, 25})))
          << azimuth;
  }
}

TEST(Invariance, Mirror) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const CityInput city = random_city(53, 71, seed);
    for (double azimuth : kAzimuths)
      EXPECT_EQ(values_of(mirrored(states(city, {azimuth, 25}))),
                values_of(states(mapped(city, mirrored), {360 - azimuth, 25})))
          << azimuth;
  }
}

TEST(Invariance, Translation) {
  CityInput a = random_city(40, 40, 7);
  CityInput b = a;
  for (auto raster : {&CityInput::dsm, &CityInput::cdsm, &CityInput::tdsm}) {
    Raster wider(60, 70, 0.0f);
    for (int64_t r = 0; r < 40; ++r)
      for (int64_t c = 0; c < 40; ++c) wider.at(r + 13, c + 21) = (a.*raster).at(r, c);
    b.*raster = wider;
  }
  for (double azimuth : kAzimuths) {
    const Raster from = states(a, {azimuth, 20}), to = states(b, {azimuth, 20});
    for (int64_t r = 0; r < 40; ++r)
      for (int64_t c = 0; c < 40; ++c) ASSERT_EQ(from.at(r, c), to.at(r + 13, c + 21)) << azimuth;
  }
}

TEST(Invariance, HigherBuildingsShadeMore) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    const CityInput low = random_city(60, 60, seed, {.vegetation = false});
    CityInput high = low;
    for (float& h : high.dsm.pixels())
      if (h > 6) h += 4;  // roofs only: the ground that is judged stays
    for (double azimuth : kAzimuths) {
      const Raster a = states(low, {azimuth, 30}), b = states(high, {azimuth, 30});
      for (size_t p = 0; p < a.pixels().size(); ++p)
        ASSERT_TRUE(low.dsm.pixels()[p] > 6 || b.pixels()[p] >= a.pixels()[p]);
    }
  }
}

TEST(Invariance, LowerSunShadesMoreOpenGround) {
  CityInput city;
  city.dsm = Raster(80, 80, 1.0f);
  for (int r = 30; r < 40; ++r)
    for (int c = 30; c < 50; ++c) city.dsm.at(r, c) = 15.0f;
  int64_t last = 0;
  for (double altitude : {80.0, 60.0, 40.0, 20.0, 10.0}) {
    const Raster s = states(city, {200, altitude});
    const int64_t shaded = std::ranges::count_if(s.pixels(), [](float v) { return v != 0; });
    EXPECT_GE(shaded, last);
    last = shaded;
  }
  EXPECT_GT(last, 0);
}

TEST(Invariance, OnlyTheFourStatesOfVegetation) {
  const City city = prepare_city(random_city(70, 50, 3));
  int seen[4] = {};
  for (double azimuth : kAzimuths)
    for (SkyState s : cast_rays(city, {azimuth, 15}).state) ++seen[static_cast<int>(s)];
  for (int n : seen) EXPECT_GT(n, 0) << "the scene shows every state";
}

TEST(Invariance, AnyShape) {
  for (auto [rows, cols] :
       {std::array<int64_t, 2>{1, 1}, {1, 9}, {9, 1}, {2, 2}, {700, 3}, {3, 700}, {17, 33}}) {
    const City city = prepare_city(random_city(rows, cols, static_cast<unsigned>(rows * 7 + cols)));
    for (double azimuth : kAzimuths)
      for (double altitude : {3.0, 30.0, 90.0}) {
        const auto rays = cast_rays(city, {azimuth, altitude});
        ASSERT_EQ(rays.state.size(), static_cast<size_t>(rows * cols));
        for (size_t p = 0; p < rays.state.size(); ++p) {
          EXPECT_GE(rays.shade_height[p], city.dsm.as<float>()[p]);
          EXPECT_EQ(rays.shade_height[p] > city.dsm.as<float>()[p],
                    !reference::sees_past_buildings(rays.state[p]));
        }
      }
    const auto walls = reference::wall_height<float>(city, 1.0);
    const auto aspect = reference::wall_aspect<float>(city, walls);
    for (float a : aspect) EXPECT_TRUE(a >= 0 && a < 360.0001f);
  }
}

TEST(Invariance, MissingPixelsAreAsIfOutside) {
  CityInput holes = random_city(40, 40, 11);
  CityInput cut = holes;  // the same without its last ten columns
  for (auto raster : {&CityInput::dsm, &CityInput::cdsm, &CityInput::tdsm}) {
    Raster narrow(40, 30);
    for (int64_t r = 0; r < 40; ++r)
      for (int64_t c = 0; c < 30; ++c) narrow.at(r, c) = (cut.*raster).at(r, c);
    cut.*raster = narrow;
  }
  for (int64_t r = 0; r < 40; ++r)
    for (int64_t c = 30; c < 40; ++c) holes.dsm.at(r, c) = std::numeric_limits<float>::quiet_NaN();
  for (double azimuth : kAzimuths) {
    const Raster a = states(holes, {azimuth, 20}), b = states(cut, {azimuth, 20});
    for (int64_t r = 0; r < 40; ++r)
      for (int64_t c = 0; c < 30; ++c) ASSERT_EQ(a.at(r, c), b.at(r, c)) << azimuth;
  }
}

TEST(Invariance, HigherReliefBoundChangesNothing) {
  const City city = prepare_city(random_city(60, 60, 5));
  for (double azimuth : kAzimuths) {
    const Direction sun{azimuth, 12};
    const auto tight = reference::cast<float>(city, ray_steps(sun, {60, 60, 1.0, city.relief_m()}), true);
    const auto loose = reference::cast<float>(city, ray_steps(sun, {60, 60, 1.0, 1000}), true);
    EXPECT_EQ(tight.state, loose.state);
    EXPECT_EQ(tight.shade_height, loose.shade_height);
    EXPECT_EQ(tight.canopy_depth, loose.canopy_depth);
  }
}

}  // namespace
}  // namespace lockstep::urban
