// The next differences of a path as combinations of its last ones, from their Gram matrix alone.
#pragma once

#include <span>
#include <vector>

namespace lockstep::forecast {

/// d(t + 1) = sum over j of coefficients[j] d(t - j), d the differences of equally spaced snapshots.
struct PathFit {
  std::vector<double> coefficients;  // newest difference first; none: there is no path
  double explained = 0;              // share of the differences' squares that the fit explains
};

/// Ridge regression of each difference on the `order` ones before it. `gram` (count x count) holds the products of the
/// differences, newest first. For noiseless linear dynamics of `order` modes this is dynamic mode decomposition, and
/// exact. Of one difference: it continues. Modes that grow by more than `max_growth` a spacing are damped to it.
PathFit fit_path(std::span<const double> gram, int count, int order, double ridge, double max_growth);

/// The move over `intervals` spacings (any share of the last one) as factors of the `count` differences.
std::vector<double> extrapolate(const PathFit& fit, int count, double intervals);

/// Largest |eigenvalue| of the recursion with these coefficients, by repeated squaring of its companion matrix.
double growth_of(std::span<const double> coefficients);

/// x of (A + shift I) x = b, A symmetric and positive semidefinite, n x n. Zeros where that is singular.
std::vector<double> solve_ridge(std::vector<double> a, std::vector<double> b, double shift);

}  // namespace lockstep::forecast
