// Plans of a series, kept and dropped, against plans made one by one.
#include "urban/radiation/step/step_plans.hpp"

#include <gtest/gtest.h>

#include "urban/rasters.hpp"
#include "urban/scenes.hpp"

namespace lockstep::urban {
namespace {

/// Steps whose sun and air belong to their number alone, of one and of three parts.
std::vector<WeatherStep> numbered_steps(size_t count) {
  std::vector<WeatherStep> steps(count);
  for (size_t k = 0; k < count; ++k) {
    StepForcing& f = steps[k].forcing;
    f.air_c = 10 + 0.01 * static_cast<double>(k);
    f.sun_altitude_deg = k % 5 == 0 ? -3 : 5 + static_cast<double>(k % 60);
    f.sun_azimuth_deg = static_cast<double>(k * 7 % 360);
    f.beam_w_m2 = 500;
    f.diffuse_w_m2 = 120;
    if (k % 3 != 1) continue;
    steps[k].substeps.assign(3, f);
    for (size_t part = 0; part < 3; ++part)
      steps[k].substeps[part].sun_azimuth_deg += static_cast<double>(part);
  }
  return steps;
}

bool same(const StepPlan& a, const StepPlan& b) {
  const auto step = [](const RayStep& s) { return std::tuple(s.drow, s.dcol, s.rise_m); };
  return a.table == b.table && a.sides == b.sides &&
         std::ranges::equal(a.sun.steps, b.sun.steps, {}, step, step) &&
         a.sun.direction.azimuth_deg == b.sun.direction.azimuth_deg;
}

TEST(StepPlanner, TablesHavePatchesOfEverySkyThatHasSome) {
  const City city = prepare_city(random_city(20, 30, 3, {true, 1.0, 0.0}));
  for (const Choice<SkyModel>& sky : choices(SkyModel{})) {
    RadiationOptions options;
    options.sky = sky.value;
    EXPECT_EQ(StepPlanner(city, options, false).patches() != nullptr, has_patches(sky.value)) << sky.name;
  }
}

TEST(StepPlans, GiveThePlansOfTheStepInAnyOrder) {
  const City city = prepare_city(random_city(40, 50, 3, {true, 1.0, 0.0}));
  const StepPlanner planner(city, {}, false);
  const std::vector<WeatherStep> steps = numbered_steps(700);  // more than are kept
  StepPlans plans(planner, steps, true);
  for (const size_t k : {0,   1,   31,  32,  33,  699, 0,   350, 351, 96,  129, 160, 200, 230, 260,
                         300, 330, 380, 400, 450, 480, 520, 550, 580, 610, 650, 1,   699, 340}) {
    const auto found = plans.of(k);
    const auto parts = steps[k].parts();
    ASSERT_EQ(found->size(), parts.size()) << k;
    for (size_t part = 0; part < parts.size(); ++part)
      EXPECT_TRUE(same((*found)[part], planner.plan(parts[part], true))) << k << ", part " << part;
  }
}

}  // namespace
}  // namespace lockstep::urban
