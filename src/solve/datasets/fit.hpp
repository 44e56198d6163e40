// Curve fitting: a formula, columns of a table, and the parameters with their standard errors.
#pragma once

#include <map>
#include <optional>
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
  /// Errors of the parameters: NaN of those at a bound or not determined; empty where none is known.
  std::vector<double> standard_errors;
  /// (parameters, parameters), scaled by the residuals' variance; 0 of parameters at a bound. Empty where one is
  /// not determined, or there are as many rows as parameters.
  std::vector<double> covariance;
  std::vector<double> fitted;  // the model by row
  double residual_sum_of_squares = 0, r_squared = 0;
  std::optional<double>
      chi_squared;  // with a column sigma and no loss; Summary::notes say where sigma contradicts it
  double residual_standard_deviation = 0;  // FitStatistics::deviation
  int64_t degrees_of_freedom = 0;
  std::vector<std::string> at_bound;      // the others' errors hold while these stay there
  std::vector<std::string> undetermined;  // may move without a change of the model
  bool singular = false;                  // some are undetermined
  Summary summary;
};

/// Fits the model to the table by minimize(). Throws InputError for an unknown column, a model that names the
/// response or has no parameters, fewer rows than parameters, or a start at which the model is not finite.
FitResult fit(const io::CsvTable& table, const FitOptions& options, Context& context);

/// Values for the parameters that `initial` lacks. Parameters in which the model is linear follow from the others by
/// linear least squares. The others are tried at values that the first column of x suggests: positions within its range,
/// widths and rates by its length, half periods of sines and cosines. A few damped steps improve the best of these, and
/// the least sum of squares wins. Looks at 256 rows at most.
std::map<std::string, double> find_start(const io::CsvTable& table, const FitOptions& options);

}  // namespace lockstep::solve
