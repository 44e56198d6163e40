// Kernels of time against closed forms: on every device they would agree on a wrong step as well.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "flow/les/kernels.hpp"

namespace lockstep::flow {
namespace {

using Doubles = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Device& interp() {
  static const Device device = Device::open("interp");
  return device;
}

// u of the members, then v; one chunk and a part of one. The largest magnitude of each, infinite where there is a NaN.
TEST(Clock, SpeedsAreThoseOfEachMemberAndChunk) {
  constexpr int64_t kMembers = 2, kPoints = kChunk + 5;
  Doubles fields(2 * kMembers * kPoints, 0.25), eddy(kMembers * kPoints, 0.125);
  const auto at = [&](Doubles& f, int64_t row, int64_t point) -> double& {
    return f[size_t(row * kPoints + point)];
  };
  at(fields, 0, kChunk - 1) = -3;             // u of member 0
  at(fields, 1, kChunk) = 4;                  // u of member 1
  at(fields, 2, 0) = -5;                      // v of member 0
  at(fields, 3, kPoints - 1) = std::nan("");  // v of member 1
  at(eddy, 1, 77) = 6;
  const Buffer speeds = interp().allocate<f64>({kMembers, 2, 3});
  interp().launch(ClockKernels<f64>::speeds(true), {kMembers, 2},
                  Arguments()
                      .set("velocity", interp().upload<double>(fields, {2 * kMembers, kPoints}))
                      .set("eddy", interp().upload<double>(eddy, {kMembers, kPoints}))
                      .set("speeds", speeds));
  EXPECT_EQ(interp().download<double>(speeds),
            (Doubles{3, 5, 0.125, 0.25, 0.25, 0.125, 0.25, 0.25, 6, 4, kInfinity, 0.125}));
}

struct Look {
  double u = 0, v = 0, viscosity = 0;  // the largest
  double time = 0, time_low = 0, end = kInfinity;
  bool eddy = false, adaptive = true;
  double blow_up = 1;
};
struct Seen {
  double dt, rate, least;
  int32_t blown_up;
};
/// dx = 0.5, dy = 0.25; steps of at most 0.125, CFL number 0.5, eddy limit 2; after 9 steps, the least of which was 0.1.
Seen look(const Look& given) {
  const Buffer clock = interp().upload<double>(
      std::vector<double>{7, given.time, given.time_low, 0, given.end, 0.1}, {1, kClockColumns});
  const Buffer status = interp().upload<int32_t>(std::vector<int32_t>{9, -1}, {1, kStatusColumns});
  // The largest is in the last of more chunks than a group has lanes.
  Doubles speeds(size_t(70 * (given.eddy ? 3 : 2)));
  const size_t last = speeds.size() - (given.eddy ? 3 : 2);
  speeds[last] = given.u, speeds[last + 1] = given.v;
  if (given.eddy) speeds[last + 2] = given.viscosity;
  Arguments a;
  a.set("speeds", interp().upload<double>(speeds, {1, 70, given.eddy ? 3 : 2}));
  a.set("clock", clock).set("status", status).set("dx", 0.5).set("dy", 0.25).set("largest_dt", 0.125);
  a.set("blow_up", given.blow_up);
  if (given.adaptive) a.set("cfl", 0.5);
  if (given.adaptive && given.eddy) a.set("eddy_limit", 2.0);
  interp().launch(ClockKernels<f64>::look(given.adaptive, given.eddy), {1}, a);
  const Doubles c = interp().download<double>(clock);
  return {c[kClockDt], c[kClockRate], c[kClockLeast], interp().download<int32_t>(status)[kStatusBlownUp]};
}

TEST(Clock, TheStepIsTheLeastOfItsLimits) {
  const Seen fast = look({.u = 3, .v = 1});  // 3 / 0.5 + 1 / 0.25
  EXPECT_EQ(fast.rate, 10);
  EXPECT_EQ(fast.dt, 0.05);
  EXPECT_EQ(fast.least, 0.05);
  EXPECT_EQ(fast.blown_up, -1);
  const Seen slow = look({.u = 0.5, .v = 0.25});
  EXPECT_EQ(slow.dt, 0.125);
  EXPECT_EQ(slow.least, 0.1);
  EXPECT_EQ(look({}).dt, 0.125);  // at rest
  EXPECT_EQ(look({.viscosity = 80, .eddy = true}).dt, 0.025);
  EXPECT_EQ(look({.u = 3, .v = 1, .viscosity = 1, .eddy = true}).dt, 0.05);
}

// Both parts of the time count, and what is left of the run ends it. Less than a millionth of a step is nothing.
TEST(Clock, TheLastStepReachesTheEnd) {
  EXPECT_EQ(look({.time = 3, .time_low = 0.25, .end = 3.3125}).dt, 0.0625);
  EXPECT_EQ(look({.time = 3, .time_low = -0.03125, .end = 3}).dt, 0.03125);
  const Seen done = look({.time = 3, .end = 3});
  EXPECT_EQ(done.dt, 0);
  EXPECT_EQ(done.least, 0.1);
  EXPECT_EQ(look({.time = 3, .end = 3 + 0x1p-30}).dt, 0);
  EXPECT_EQ(look({.time = 3, .end = 3 + 0x1p-22}).dt, 0x1p-22);
}

TEST(Clock, WhatIsInfiniteHasBlownUp) {
  for (const Look& given :
       {Look{.u = kInfinity}, Look{.v = kInfinity}, Look{.viscosity = kInfinity, .eddy = true}}) {
    const Seen seen = look(given);
    EXPECT_EQ(seen.blown_up, 9);
    EXPECT_EQ(seen.dt, 0);
    EXPECT_EQ(seen.least, 0.1);
  }
}

// Steps of 0.125 at a rate of 10 have a CFL number of 1.25. The dt of a run with fixed steps is left alone.
TEST(Clock, FixedStepsBlowUpBeyondTheirLimit) {
  const Seen stable = look({.u = 3, .v = 1, .adaptive = false, .blow_up = 1.25});
  EXPECT_EQ(stable.blown_up, -1);
  EXPECT_EQ(stable.dt, 7);
  EXPECT_EQ(look({.u = 3, .v = 1, .adaptive = false, .blow_up = 1.1875}).blown_up, 9);
  EXPECT_EQ(look({.u = kInfinity, .adaptive = false}).blown_up, 9);
}

// Many steps of 0.1f: the two numbers together keep what rounding takes. Steps of 0 are none.
TEST(Clock, ManyTicksLoseNothing) {
  constexpr int kTicks = 2000, kBy = 7;
  const Buffer clock =
      interp().upload<float>(std::vector<float>{0.1f, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0}, {2, kClockColumns});
  const Buffer status = interp().upload<int32_t>(std::vector<int32_t>{3, -1, 3, -1}, {2, kStatusColumns});
  for (int k = 0; k < kTicks; ++k)
    interp().launch(ClockKernels<f32>::tick(), {2},
                    Arguments().set("clock", clock).set("status", status).set("by", kBy));
  const std::vector<float> c = interp().download<float>(clock);
  const double time = double(c[kClockTime]) + double(c[kClockTimeLow]);
  EXPECT_NEAR(time, double(0.1f) * kBy * kTicks, 1e-3);  // one f32 alone is off by more than 1e-2
  EXPECT_EQ(c[kClockColumns + kClockTime], 5);
  EXPECT_EQ(interp().download<int32_t>(status), (std::vector<int32_t>{3 + kTicks * kBy, -1, 3, -1}));
}

}  // namespace
}  // namespace lockstep::flow
