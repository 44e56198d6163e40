// The plain reference against published arrays of Athens.
#include "urban/athens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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
  template <class Values> static double worst(const Values& ours, const std::string& name) {
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

}  // namespace
}  // namespace lockstep::urban
