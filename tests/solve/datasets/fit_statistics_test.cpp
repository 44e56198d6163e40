// Standard errors under a robust loss against Huber's formula, written out for a mean.
#include "solve/fit/fit_statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "solve/model/robust_loss.hpp"

namespace lockstep::solve {
namespace {

// One parameter, the mean of ten numbers, three of them beyond the scale 1. With psi the residual cut at 1, m the share
// within it and K = 1 + 1/n (1 - m) / m (Huber 1981): s = K sqrt(sum psi^2 / (n - 1)) / m, and the error is s / sqrt(n).
TEST(FitStatistics, HubersCorrectionOfAMean) {
  Eigen::VectorXd r(10);
  r << 0.2, -0.4, 0.9, -0.1, 3, 0.5, -2.5, 0.3, -0.7, 7;
  const Eigen::MatrixXd jacobian = Eigen::MatrixXd::Ones(10, 1);
  double squares = 0;
  for (const double v : r) squares += std::pow(std::clamp(v, -1.0, 1.0), 2);
  const double m = 0.7, k = 1 + 0.1 * (1 - m) / m, s = k * std::sqrt(squares / 9) / m;
  const FitStatistics found = fit_statistics(r, jacobian, {0}, parse_robust_loss("huber:1"));
  EXPECT_NEAR(found.deviation, s, 1e-13);
  ASSERT_EQ(found.standard_errors.size(), 1u);
  EXPECT_NEAR(found.standard_errors[0], s / std::sqrt(10.0), 1e-13);
  EXPECT_NEAR(found.covariance[0], s * s / 10, 1e-13);
  const FitStatistics plain = fit_statistics(r, jacobian, {0}, {});
  EXPECT_NEAR(plain.deviation, std::sqrt(r.squaredNorm() / 9), 1e-13);
}

}  // namespace
}  // namespace lockstep::solve
