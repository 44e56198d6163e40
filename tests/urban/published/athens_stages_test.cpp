// The public functions against published arrays of Athens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/context.hpp"
#include "lockstep/error.hpp"
#include "urban/published/athens.hpp"

namespace lockstep::urban {
namespace {

using testing::athens_raster;
using testing::read_athens;

double worst(const Raster& ours, const std::string& name) {
  const auto golden = read_athens(name);
  double apart = ours.pixels().size() == golden->size() ? 0 : 1e30;
  for (size_t p = 0; p < golden->size() && apart < 1e30; ++p)
    apart = std::max(apart, std::abs(static_cast<double>(ours.pixels()[p]) - (*golden)[p]));
  return apart;
}

TEST(AthensStages, ReproducePublishedArrays) {
  if (!read_athens("input_dsm")) GTEST_SKIP() << "no test data under " << testing::data_folder();
  Context context(ContextOptions{.device = "cpu,interp"});
  const CityInput city = testing::athens_city();
  const Shadows noon = compute_shadows(context, city, {180, 60});
  EXPECT_EQ(worst(noon.buildings, "shadow_noon_bldg_sh"), 0);
  EXPECT_EQ(worst(noon.vegetation, "shadow_noon_veg_sh"), 0);

  WallOptions limit;
  limit.minimum_height_m = 1;
  limit.ties = WallTies::first;
  const Walls walls = compute_walls(context, city, limit);
  EXPECT_EQ(worst(walls.height, "input_wall_ht"), 0);
  EXPECT_LE(worst(walls.aspect, "input_wall_asp"), 3e-4);
  EXPECT_EQ(std::ranges::count_if(walls.height.pixels(), [](float w) { return w > 0; }), 16832);

  const ShadowsWithWalls morning = compute_wall_shadows(context, city, walls, {90, 30});
  EXPECT_EQ(worst(morning.shadows.buildings, "shadow_morning_bldg_sh"), 0);
  EXPECT_EQ(worst(morning.shadows.vegetation, "shadow_morning_veg_sh"), 0);
  EXPECT_LE(worst(morning.walls.sun, "shadow_morning_wall_sun"), 1e-4);
  EXPECT_LE(worst(morning.walls.shadow, "shadow_morning_wall_sh"), 1e-4);

  const SkyViewFactors factors = compute_sky_view_factors(context, city);
  EXPECT_LE(worst(factors["svf"], "svf_total"), 1e-5);
  EXPECT_LE(worst(factors["svf_east"], "svf_east"), 1e-5);
  EXPECT_LE(worst(factors["svf_veg"], "svf_veg"), 1e-5);
  EXPECT_THROW(factors["svf_up"], InputError);
}

}  // namespace
}  // namespace lockstep::urban
