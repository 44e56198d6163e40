// Measuring: orders by time, and the rows that become of them.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "lockstep/error.hpp"
#include "verify/variant_subjects.hpp"

namespace lockstep::variants {
namespace {

TEST(Rank, MovesOnlyWhatIsClearlyFaster) {
  const auto timings = [](std::vector<double> seconds) {
    std::vector<Timing> list;
    for (size_t v = 0; v < seconds.size(); ++v)
      list.push_back({int(v), seconds[v], -1, seconds[v] > 0 ? "" : "no"});
    return list;
  };
  EXPECT_EQ(rank({0, 1, 2}, timings({3, 2, 1})), (std::vector<int>{2, 1, 0}));
  EXPECT_EQ(rank({0, 1, 2}, timings({1, 0.98, 0.99})), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(rank({0, 1, 2}, timings({1, 0.96, 2})), (std::vector<int>{1, 0, 2}));
  // Variants that do not apply go last.
  EXPECT_EQ(rank({0, 1, 2}, timings({0, 2, 1})), (std::vector<int>{2, 1, 0}));
}

/// Variants that sleep: `steady` for 8 ms, `growing` for as many as the size, and one that applies nowhere.
Subject sleepers(const Computation& computation) {
  Subject s;
  s.computation = &computation;
  s.host = {"points", {1, 30}};
  s.small = {1};
  s.position = [](const Device&, int64_t n) { return double(n); };
  s.bind = [](const Device&, int64_t n, std::string_view variant) {
    if (variant == "blocks") throw UnsupportedError("never", "test", "another");
    const auto ms = std::chrono::milliseconds(variant == "lanes" ? n : 8);
    return CaseRun{[ms] { std::this_thread::sleep_for(ms); }, [] { return std::vector<Array>(); }};
  };
  return s;
}
ComputationOptions transforms(Agreement exact) {
  return {.name = "primitives.fft",
          .variants = {"passes", "blocks", "lanes"},
          .axes = {"points"},
          .exact = exact};
}

TEST(Tune, MeasuresTheCrossover) {
  const Device device = Device::open("interp");
  const Computation computation(transforms(Agreement::bits));
  const Tuned tuned = tune(device, sleepers(computation), 0.5);
  EXPECT_EQ(tuned.skipped, "");
  ASSERT_EQ(tuned.points.size(), 2u);
  EXPECT_EQ(tuned.points[0].timings[1].refusal, "never");
  EXPECT_EQ(tuned.points[0].before, 0);  // as shipped
  EXPECT_EQ(tuned.points[0].after, 2);
  EXPECT_EQ(tuned.points[1].after, 0);
  EXPECT_EQ(tuned.row.device, "interpreter of the kernel IR");
  EXPECT_EQ(tuned.row.numerics, "");
  ASSERT_EQ(tuned.row.steps.size(), 2u);
  EXPECT_EQ(tuned.row.steps[0].ranking, (std::vector<std::string>{"lanes", "passes", "blocks"}));
  EXPECT_EQ(tuned.row.steps[1].from, 30);
  EXPECT_EQ(tuned.row.steps[1].ranking, (std::vector<std::string>{"passes", "lanes", "blocks"}));
  // The row is what the choice then follows.
  Table table;
  table.put(tuned.row);
  const std::vector<Computation::Row> rows = computation.rows(table, true);
  const Axis small{"points", 29}, large{"points", 30};
  EXPECT_EQ(computation.ranking(rows, device.info(), Numerics::exact, {{}, {&small, 1}}).front(), 2);
  EXPECT_EQ(computation.ranking(rows, device.info(), Numerics::exact, {{}, {&large, 1}}).front(), 0);
}

// A size that alone has another order is given that of its neighbours.
TEST(Tune, SmoothsTheOrderOfASingleSize) {
  const Computation computation(transforms(Agreement::bits));
  Subject subject = sleepers(computation);
  subject.host.sizes = {1, 30, 2, 3};
  subject.position = [](const Device&, int64_t n) { return n == 1 ? 0. : n == 30 ? 10. : 10. + double(n); };
  const Tuned tuned = tune(Device::open("interp"), subject, 0.5);
  ASSERT_EQ(tuned.points.size(), 4u);
  for (const Point& point : tuned.points) EXPECT_EQ(point.after, 2) << point.size;
  ASSERT_EQ(tuned.row.steps.size(), 1u);
  EXPECT_EQ(tuned.row.steps[0].ranking.front(), "lanes");
}

TEST(Tune, LeavesRoundingAlone) {
  const Computation rounding(transforms(Agreement::bound));
  const Tuned exact = tune(Device::open("interp"), sleepers(rounding), 0.5);
  EXPECT_TRUE(exact.points.empty());
  EXPECT_TRUE(exact.row.steps.empty());
  EXPECT_NE(exact.skipped.find("fast numerics only"), std::string::npos);
  const Tuned fast = tune(Device::open("interp", {.numerics = Numerics::fast}), sleepers(rounding), 0.5);
  EXPECT_EQ(fast.row.numerics, "fast");
  EXPECT_EQ(fast.row.steps.size(), 2u);
}

TEST(Tune, StoresNothingThatWasNotMeasuredToTheEnd) {
  const Computation computation(transforms(Agreement::bits));
  const Tuned tuned = tune(Device::open("interp"), sleepers(computation), 0);
  EXPECT_TRUE(tuned.row.steps.empty());
  EXPECT_NE(tuned.skipped.find("the time was up"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::variants
