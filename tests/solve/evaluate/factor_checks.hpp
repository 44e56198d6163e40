// Shared by tests of ready-made residuals: poses as Eigen's transformations, weights, checks of expected residuals.
#pragma once

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <cmath>
#include <vector>

#include "lockstep/solve/evaluation.hpp"
#include "problems.hpp"

namespace lockstep::solve::test {

inline Eigen::Isometry3d isometry3(const double* p) {
  Eigen::Isometry3d x = Eigen::Isometry3d::Identity();
  x.translation() << p[0], p[1], p[2];
  x.linear() = Eigen::Quaterniond(p[3], p[4], p[5], p[6]).toRotationMatrix();
  return x;
}
inline Eigen::Isometry2d isometry2(const double* p) {
  Eigen::Isometry2d x = Eigen::Isometry2d::Identity();
  x.translation() << p[0], p[1];
  x.linear() = Eigen::Rotation2Dd(p[2]).toRotationMatrix();
  return x;
}
/// Rows of poses in space.
inline std::vector<double> poses3(size_t count, uint64_t seed) {
  std::vector<double> x = random_numbers(7 * count, seed);
  normalize_rows(x, 7, 3, 4);
  return x;
}
/// An upper triangle by rows, appended to `data`, and as a matrix.
inline Eigen::MatrixXd weights(int n, std::vector<double>& data) {
  Eigen::MatrixXd w = Eigen::MatrixXd::Zero(n, n);
  for (int r = 0, k = 0; r < n; ++r)
    for (int c = r; c < n; ++c, ++k) data.push_back(w(r, c) = r == c ? 1.5 + r : 0.3 * std::sin(3.0 * k + 1));
  return w;
}

/// Residuals are the expected ones, and derivatives are the slopes of residuals.
inline void expect_residuals(const Problem& problem, const Eigen::VectorXd& expected) {
  ContextOptions interp;
  interp.device = "interp";
  Context context(interp);
  const Evaluation found = evaluate(problem, context);
  ASSERT_EQ(found.residuals.size(), size_t(expected.size()));
  for (Eigen::Index k = 0; k < expected.size(); ++k)
    EXPECT_NEAR(found.residuals[size_t(k)], expected[k], 1e-11 * (1 + std::abs(expected[k]))) << k;
  for (const DerivativeFault& fault : check_derivatives(problem, {.spread = 0.01}))
    ADD_FAILURE() << fault.text();
}

}  // namespace lockstep::solve::test
