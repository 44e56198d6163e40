// Curve fitting: a formula, columns of a table, and the parameters with their standard errors.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/series/csv.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

struct FitOptions {
  std::string model;                                        // "a*exp(-b*t) + c"
  std::vector<std::string> x;                               // columns that the model names
  std::string y;                                            // column of the response
  std::string sigma;                                        // column of its standard deviations, or empty
  std::map<std::string, double> initial;                    // of parameters; find_start() gives the others
  std::map<std::string, std::pair<double, double>> bounds;  // lower, upper
  RobustLoss loss;
  Options options;
};

struct FitResult {
  std::vector<std::string> parameters;  // names in the model that are no columns
  std::vector<double> initial, values;
  /// Of the parameters, and their covariance (parameters, parameters), scaled by the residuals' variance;
  /// empty where the data do not determine the parameters or there are as many rows as parameters.
  std::vector<double> standard_errors, covariance;
  double residual_sum_of_squares = 0, residual_standard_deviation = 0, r_squared = 0;
  int64_t degrees_of_freedom = 0;
  bool singular = false;  // the data do not determine the parameters
  Summary summary;
};

/// Fits the model to the table by minimize(). Throws InputError for an unknown column, a model without
/// parameters, fewer rows than parameters, or a start at which the model is not finite.
FitResult fit(const io::CsvTable& table, const FitOptions& options, Context& context);

/// Values for the parameters that `given` lacks: parameters in which the model is linear follow from the
/// others by linear least squares; the others are taken from a fixed list of magnitudes around the scales of
/// the columns, and the start with the least sum of squares wins.
std::map<std::string, double> find_start(const io::CsvTable& table, const FitOptions& options);

}  // namespace lockstep::solve
