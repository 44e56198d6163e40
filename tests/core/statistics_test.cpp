#include "core/numbers/statistics.hpp"

#include <gtest/gtest.h>

namespace {

using lockstep::median;
using lockstep::percentile;

TEST(Statistics, PercentilesLieBetweenOrderStatistics) {
  EXPECT_EQ(percentile({}, 0.5), 0);
  EXPECT_EQ(percentile({7}, 0.95), 7);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(percentile({5, 1, 3}, 0), 1);
  EXPECT_EQ(percentile({5, 1, 3}, 1), 5);
  // As numpy.percentile has it: 0.95 * (21 - 1) is the 19th step.
  std::vector<double> steps;
  for (int k = 20; k >= 0; --k) steps.push_back(k);
  EXPECT_NEAR(percentile(steps, 0.95), 19, 1e-12);
  steps.pop_back();
  EXPECT_NEAR(percentile(steps, 0.95), 19.05, 1e-12);
}

}  // namespace
