// Confidence of a fit beyond standard errors: intervals by the profile likelihood, bands around the curve.
#pragma once

#include <Eigen/Core>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/solve/run.hpp"

namespace lockstep::solve {

/// A fit at its minimum: the block of free parameters, and what scales its sums of squares.
struct FitMinimum {
  Problem& problem;
  BlockSet block;
  std::vector<double> values, errors;  // by free parameter; errors are NaN of those that are held
  std::vector<double> covariance;      // (free, free), or empty
  std::vector<std::pair<double, double>> bounds;
  double squares = 0, variance = 0;  // weighted sum of squares; variance of a weighted residual
  double freedom = 0;                // infinite where the variance is known
};

/// Of the parameters with a standard error. The problem has its values again afterwards. A note says where a lower minimum is
/// seen on the way.
std::vector<FitProfile> profile_intervals(const FitMinimum& fit, std::span<const std::string> names,
                                          Context& context, const Options& options,
                                          std::vector<std::string>& notes);

/// `jacobian`: of the weighted residuals (rows, free).
FitBands bands_of(const FitMinimum& fit, const Eigen::MatrixXd& jacobian, std::span<const double> weights);

}  // namespace lockstep::solve
