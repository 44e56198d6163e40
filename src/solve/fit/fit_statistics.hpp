// Statistics of a fit's parameters, from residuals and their derivatives.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

struct FitStatistics {
  /// Scale of the residuals that standard errors rest on: sqrt(sum r^2 / (n - p)). Under a robust loss
  /// K sqrt(sum psi^2 / (n - p)) / mean(psi'), psi the derivative of 1/2 rho(r^2) and K Huber's correction
  /// 1 + p/n var(psi') / mean(psi')^2 (Huber 1981, Robust Statistics, 7.6), so outliers count as the loss lets
  /// them. NaN for n = p, or where mean(psi') is not positive.
  double deviation = 0;
  std::vector<uint8_t> undetermined;    // by parameter: it may move without a change of the model
  std::vector<double> standard_errors;  // NaN of parameters that are held or undetermined
  std::vector<double> covariance;       // (p, p); 0 of held ones; empty where one is undetermined
};

/// `residuals` (n) and their Jacobian (n, p) without the loss; `held`: parameters that are at a bound. The
/// rank is that of the scaled Jacobian, singular values below 1e-13 of the largest counting as none. `absolute`: residuals
/// are in units of their standard deviation, so that errors and covariance are not scaled by `deviation`.
FitStatistics fit_statistics(const Eigen::VectorXd& residuals, const Eigen::MatrixXd& jacobian,
                             const std::vector<uint8_t>& held, const RobustLoss& loss, bool absolute = false);

/// The solution of least length of min |A x - b|, columns of A scaled to length 1, where A has not full rank;
/// else the solution.
Eigen::VectorXd least_solution(const Eigen::MatrixXd& a, const Eigen::VectorXd& b);

}  // namespace lockstep::solve
