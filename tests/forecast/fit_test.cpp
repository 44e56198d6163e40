// Fits of paths from Gram matrices: closed forms.
#include "forecast/predict/jump/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::forecast {
namespace {

/// Snapshots of sum over modes of w_m lambda_m^t, newest first, each mode along an axis of its own.
std::vector<double> modes_at(const std::vector<double>& modes, double t) {
  std::vector<double> x;
  for (size_t m = 0; m < modes.size(); ++m) x.push_back((1 + double(m)) * std::pow(modes[m], t));
  return x;
}

std::vector<double> gram_of(const std::vector<std::vector<double>>& differences) {
  std::vector<double> gram;
  for (const auto& a : differences)
    for (const auto& b : differences) {
      double sum = 0;
      for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
      gram.push_back(sum);
    }
  return gram;
}

std::vector<std::vector<double>> differences_of(const std::vector<double>& modes, int count) {
  std::vector<std::vector<double>> all;
  for (int j = 0; j < count; ++j) {
    const auto late = modes_at(modes, 20 - j), early = modes_at(modes, 19 - j);
    std::vector<double> d;
    for (size_t i = 0; i < late.size(); ++i) d.push_back(late[i] - early[i]);
    all.push_back(d);
  }
  return all;
}

TEST(Fit, LinearDynamicsAreExtrapolatedExactly) {
  const std::vector<double> modes{0.97, 0.8, 0.6};
  const auto d = differences_of(modes, 7);
  const PathFit fit = fit_path(gram_of(d), 7, 3, 0, 1);
  EXPECT_NEAR(fit.explained, 1, 1e-9);
  EXPECT_NEAR(growth_of(fit.coefficients), 0.97, 1e-3);
  for (const double ahead : {1.0, 4.0, 10.0}) {
    const std::vector<double> a = extrapolate(fit, 7, ahead);
    const auto now = modes_at(modes, 20), then = modes_at(modes, 20 + ahead);
    for (size_t i = 0; i < modes.size(); ++i) {
      double moved = now[i];
      for (size_t j = 0; j < d.size(); ++j) moved += a[j] * d[j][i];
      EXPECT_NEAR(moved, then[i], 1e-5 * std::abs(now[i])) << ahead << " spacings, mode " << i;
    }
  }
}

TEST(Fit, PartsOfASpacingAreProportional) {
  const PathFit straight{{1.0}, 1};
  EXPECT_EQ(extrapolate(straight, 2, 0), (std::vector<double>{0, 0}));
  EXPECT_EQ(extrapolate(straight, 2, 0.5), (std::vector<double>{0.5, 0}));
  EXPECT_EQ(extrapolate(straight, 2, 2.25), (std::vector<double>{2.25, 0}));
  const PathFit halving{{0.5}, 1};
  EXPECT_DOUBLE_EQ(extrapolate(halving, 1, 3)[0], 0.5 + 0.25 + 0.125);
}

TEST(Fit, GrowthIsDamped) {
  // Differences that double: 8, 4, 2, 1.
  std::vector<std::vector<double>> d{{8}, {4}, {2}, {1}};
  EXPECT_NEAR(fit_path(gram_of(d), 4, 1, 0, 10).coefficients[0], 2, 1e-12);
  EXPECT_NEAR(fit_path(gram_of(d), 4, 1, 0, 1).coefficients[0], 1, 1e-2);
  EXPECT_NEAR(growth_of(std::vector<double>{0, 4}), 2, 1e-2);
  EXPECT_NEAR(growth_of(std::vector<double>{1.5, -0.5}), 1, 1e-2);  // roots 1 and 1/2
}

TEST(Fit, FewOrEmptyPathsHaveNoDirection) {
  EXPECT_TRUE(fit_path({}, 0, 2, 0, 1).coefficients.empty());
  EXPECT_TRUE(fit_path(std::vector<double>{0.0}, 1, 2, 0, 1).coefficients.empty());
  EXPECT_EQ(fit_path(std::vector<double>{2.0}, 1, 2, 0, 1).coefficients, std::vector<double>{1.0});
  // Parallel differences make a singular system: the ridge gives the even split, none gives no move.
  const PathFit ridged = fit_path(std::vector<double>(9, 1.0), 3, 2, 1e-6, 10);
  EXPECT_NEAR(ridged.coefficients[0], 0.5, 1e-5);
  EXPECT_NEAR(ridged.coefficients[1], 0.5, 1e-5);
  for (const double c : fit_path(std::vector<double>(9, NAN), 3, 2, 0, 1).coefficients) EXPECT_EQ(c, 0);
}

TEST(Fit, RidgeSolve) {
  const std::vector<double> x = solve_ridge({4, 1, 1, 3}, {1, 2}, 0);
  EXPECT_NEAR(x[0], 1.0 / 11, 1e-15);
  EXPECT_NEAR(x[1], 7.0 / 11, 1e-15);
  EXPECT_NEAR(solve_ridge({2}, {1}, 2)[0], 0.25, 1e-15);
}

}  // namespace
}  // namespace lockstep::forecast
