// The plain reference against published arrays of Athens.
#include "urban/published/athens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "urban/rasters.hpp"
#include "urban/scenes.hpp"

namespace lockstep::urban {
namespace {

using testing::athens_city;
using testing::cast_rays;
using testing::read_athens;

class Athens : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!read_athens("input_dsm")) GTEST_SKIP() << "no test data under " << testing::data_folder();
    city_ = prepare_city(athens_city());
  }
  template <class Values>
  static double worst(const Values& ours, const std::string& name) {
    const auto golden = read_athens(name);
    double worst = 0;
    for (size_t p = 0; p < golden->size(); ++p)
      worst = std::max(worst, std::abs(static_cast<double>(ours[p]) - (*golden)[p]));
    return worst;
  }
  int differing(const reference::Cast<float>& rays, const std::string& name, bool vegetation) const {
    const auto golden = read_athens(name);
    int count = 0;
    for (size_t p = 0; p < golden->size(); ++p) {
      const SkyState s = rays.state[p];
      const bool sees = vegetation ? reference::sees_past_vegetation(s) : reference::sees_past_buildings(s);
      count += sees != ((*golden)[p] > 0.5);
    }
    return count;
  }
  City city_;
};

TEST_F(Athens, ShadowsOfMorningAndNoon) {
  const auto morning = cast_rays(city_, {90, 30}), noon = cast_rays(city_, {180, 60});
  EXPECT_EQ(differing(morning, "shadow_morning_bldg_sh", false), 0);
  EXPECT_EQ(differing(morning, "shadow_morning_veg_sh", true), 0);
  EXPECT_EQ(differing(noon, "shadow_noon_bldg_sh", false), 0);
  EXPECT_EQ(differing(noon, "shadow_noon_veg_sh", true), 0);
}

TEST_F(Athens, WallsOfTheMorning) {
  const auto rays = cast_rays(city_, {90, 30});
  const std::vector<float> walls = values_of(testing::athens_raster("input_wall_ht")),
                           aspect = values_of(testing::athens_raster("input_wall_asp"));
  const auto shaded = reference::shade_walls<float>(city_, rays, walls, aspect, 90);
  EXPECT_LE(worst(shaded.sun, "shadow_morning_wall_sun"), 1e-4);
  EXPECT_LE(worst(shaded.shadow, "shadow_morning_wall_sh"), 1e-4);
}

TEST_F(Athens, WallHeightIsExact) {
  EXPECT_EQ(worst(reference::wall_height<float>(city_, 1.0), "input_wall_ht"), 0.0);
}

TEST_F(Athens, WallAspect) {
  const auto walls = reference::wall_height<float>(city_, 1.0);
  WallOptions published;
  published.ties = WallTies::first;
  EXPECT_LE(worst(reference::wall_aspect<float>(city_, walls, published), "input_wall_asp"), 1e-4);
}

TEST_F(Athens, SkyViewFactors) {
  const SkyOptions options;
  const SkyDivision sky = sky_division(options.patches, options.edges);
  const auto grids =
      reference::sky_view<float>(city_, sky, reference::sky_states<float>(city_, sky, options));
  EXPECT_LE(worst(grids[0], "svf_total"), 1e-5);
  EXPECT_LE(worst(grids[1], "svf_east"), 1e-5);
  EXPECT_LE(worst(grids[5], "svf_veg"), 1e-5);
}

}  // namespace
}  // namespace lockstep::urban
