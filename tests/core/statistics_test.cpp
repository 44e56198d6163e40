#include "core/numbers/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/numbers/random.hpp"

namespace {

using lockstep::median;
using lockstep::percentile;
using lockstep::philox;
using lockstep::random_key;
using lockstep::random_unit;
using lockstep::unit_interval;

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

// Known answers of Random123's philox2x32 with ten rounds: counters of zeros, of ones, and of the digits of pi.
TEST(Random, PhiloxHasThePublishedNumbers) {
  EXPECT_EQ(philox(0, 0, 0), 0xff1dae59u);
  EXPECT_EQ(philox(0xffffffffu, 0xffffffffu, 0xffffffffu), 0x2c3f628bu);
  EXPECT_EQ(philox(0x243f6a88u, 0x85a308d3u, 0x13198a2eu), 0xdd7ce038u);
}

// Neighbours in seed and use share no key, and unit numbers lie within their interval with the mean of an even spread.
TEST(Random, KeysAndUnitNumbers) {
  std::set<uint32_t> keys;
  for (uint64_t seed = 0; seed < 64; ++seed)
    for (uint64_t use = 0; use < 64; ++use) keys.insert(random_key(seed, use));
  EXPECT_GT(keys.size(), 4094u) << "of 4096: two would meet once in 500 draws";
  EXPECT_EQ(unit_interval(0), 0x1p-33);
  EXPECT_EQ(unit_interval(0xffffffffu), 1 - 0x1p-33);
  double sum = 0, squares = 0, most = 0;
  for (uint32_t k = 0; k < 100'000; ++k) {
    const double u = random_unit(k, 7, 11);
    sum += u, squares += u * u, most = std::max(most, u);
    ASSERT_EQ(u * 0x1p24, std::floor(u * 0x1p24));
  }
  EXPECT_LT(most, 1);
  EXPECT_NEAR(sum / 1e5, 0.5, 5 / std::sqrt(12e5));
  EXPECT_NEAR(squares / 1e5, 1.0 / 3, 0.005);
}

}  // namespace
