#include "solve/minimize/crossover.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "core/temporary_folder.hpp"
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

TEST(Crossover, ThresholdsAreKeptByDevice) {
  const lockstep::test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "new" / "thresholds.txt";
  EXPECT_EQ(read_threshold(file, "one"), kDefaultThreshold);
  write_threshold(file, "one", 500);
  write_threshold(file, "another, driver 1", 7);
  write_threshold(file, "one", 600);
  EXPECT_EQ(read_threshold(file, "one"), 600);
  EXPECT_EQ(read_threshold(file, "another, driver 1"), 7);
  EXPECT_EQ(read_threshold(file, "a third"), kDefaultThreshold);
  std::ofstream(file, std::ios::app) << "broken line\nfourth\tnumber\nfifth\t-3\n";
  EXPECT_EQ(read_threshold(file, "fourth"), kDefaultThreshold);
  EXPECT_EQ(read_threshold(file, "fifth"), kDefaultThreshold);
  EXPECT_EQ(read_threshold(file, "one"), 600);
}

TEST(Crossover, WhatIsNoSmallFileIsNotRead) {
  const lockstep::test::TemporaryFolder folder;
  std::ofstream(folder / "large") << "one\t5\n" << std::string(1 << 17, 'x');
  EXPECT_EQ(read_threshold(folder / "large", "one"), kDefaultThreshold);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_threshold(folder / "pipe", "one"), kDefaultThreshold);
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
