#include "solve/minimize/crossover.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "solve/case_problems.hpp"

namespace lockstep::solve {
namespace {

TEST(Crossover, NeedsEveryLargerSizeToBeFaster) {
  const auto point = [](int64_t n, double cpu, double device) { return CrossoverPoint{n, n, cpu, device}; };
  EXPECT_EQ(crossover({point(10, 1, 9), point(100, 4, 5), point(1000, 9, 6), point(9000, 90, 7)}), 1000);
  EXPECT_EQ(crossover({point(10, 2, 1), point(100, 4, 5), point(1000, 9, 6)}), 1000);
  EXPECT_EQ(crossover({point(10, 2, 1), point(100, 4, 3)}), 10);
  EXPECT_EQ(crossover({point(10, 2, 1), point(100, 4, 5)}), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(crossover({}), std::numeric_limits<int64_t>::max());
}

TEST(Crossover, RowsOfDevicesChoose) {
  DeviceInfo one, other;
  one.description = "One, driver 1", other.description = "Other";
  variants::Table table;
  table.put(placement_row(one, 500));
  table.put(placement_row(one, 600));
  table.put(placement_row(other, std::numeric_limits<int64_t>::max()));
  ASSERT_EQ(table.rows().size(), 2u);
  const auto rows = placement_computation().rows(variants::Table::parse(table.text(), "test"), true);
  const auto on_device = [&](const DeviceInfo& device, double residuals) {
    const variants::Axis axis{"residuals", residuals};
    return placement_computation().ranking(rows, device, Numerics::exact, {{}, {&axis, 1}}).front() == 1;
  };
  EXPECT_FALSE(on_device(one, 599));
  EXPECT_TRUE(on_device(one, 600));
  EXPECT_FALSE(on_device(other, 1e9));
}

TEST(Crossover, TheCpuIsPreferredWhereAskedOnly) {
  const Problem problem = mesh_problem(1, false, 1);
  const Device cpu = Device::open("cpu");
  Options options;
  EXPECT_FALSE(prefers_cpu(problem, cpu, options));
  options.backend = Placement::cpu;
  EXPECT_TRUE(prefers_cpu(problem, cpu, options));
  options.backend = Placement::automatic;
  options.threshold = 0;
  EXPECT_FALSE(prefers_cpu(problem, cpu, options));
}

TEST(Crossover, MeasuresEverySize) {
  const Device cpu = Device::open("cpu");
  int told = 0;
  const auto points = measure_crossover(cpu, cpu, 1, [&](const CrossoverPoint&) { ++told; });
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(told, 2);
  EXPECT_EQ(points[0].vertices, 12);
  EXPECT_EQ(points[1].vertices, 42);
  // One spring and three components of a difference of normals for each of 3 V - 6 edges.
  EXPECT_EQ(points[1].residuals, 120 * 4);
  for (const CrossoverPoint& p : points) {
    EXPECT_GT(p.cpu_seconds, 0);
    EXPECT_GT(p.device_seconds, 0);
  }
}

}  // namespace
}  // namespace lockstep::solve
