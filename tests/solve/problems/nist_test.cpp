// NIST's reference datasets: every file, both starts, at least six certified digits.
#include "solve/problems/nist.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "io/file.hpp"
#include "io/test_data.hpp"
#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> found;
  const std::filesystem::path folder = test::data_folder() / "solve" / "nist";
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".dat") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

class Nist : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  Context context_{ContextOptions{.device = "cpu"}};
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Nist);

TEST_P(Nist, SixDigitsFromBothStarts) {
  const NistProblem nist = read_nist(GetParam());
  for (const int start : {1, 2}) {
    const NistResult result = solve_nist(nist, start, context_, nist_options());
    if (std::getenv("LOCKSTEP_NIST_TABLE"))
      fmt::print("{:10} {} lre {:5.2f} its {:5} {} rss {:.6e} ({:.6e})\n", nist.name, start, result.lre, result.summary.iterations,
                 name(result.summary.termination), result.residual_sum_of_squares, nist.residual_sum_of_squares);
    EXPECT_GE(result.lre, 6) << "start " << start << "\n" << report(result.summary).substr(0, 1200);
  }
}
INSTANTIATE_TEST_SUITE_P(Files, Nist, ::testing::ValuesIn(files()),
                         [](const auto& tested) { return tested.param.stem().string(); });

}  // namespace
}  // namespace lockstep::solve
