// Curve fitting: a formula, columns of one or several tables, and the parameters with their standard errors.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/series/csv.hpp"
#include "lockstep/solve.hpp"
#include "lockstep/solve/run.hpp"
#include "solve/fit/fit_setup.hpp"

namespace lockstep::solve {

struct FitResult {
  std::vector<std::string> parameters;            // FitSetup::names
  std::map<std::string, std::string> constraint;  // of those that one gives: its formula
  std::vector<double> initial, values;
  /// Errors of the parameters: NaN of those at a bound, held or not determined; empty where none is known.
  std::vector<double> standard_errors;
  /// (parameters, parameters), scaled by the residuals' variance unless sigma is absolute; 0 of parameters at a bound.
  /// Empty where one is not determined, or where there are as many rows as parameters and sigma is not absolute.
  std::vector<double> covariance;
  std::vector<double> fitted;  // the model by row, data set after data set
  double residual_sum_of_squares = 0, r_squared = 0;
  std::optional<double>
      chi_squared;  // with a column sigma and no loss; Summary::notes say where sigma contradicts it
  std::optional<double>
      chi_squared_probability;             // of one as large or larger, if sigma and the model are right
  double residual_standard_deviation = 0;  // FitStatistics::deviation
  int64_t degrees_of_freedom = 0;
  std::vector<std::string> at_bound;      // the others' errors hold while these stay there
  std::vector<std::string> undetermined;  // may move without a change of the model
  bool singular = false;                  // some are undetermined
  FitResidualTests tests;
  std::vector<FitProfile> profile;  // if requested
  std::optional<FitBands> bands;    // if requested
  std::optional<FitCurve> at;       // at FitOptions::at
  Summary summary;
};

/// A fit and the problem at its minimum, where parameters at a bound are held.
struct FittedProblem {
  FitResult result;
  Problem problem;
  std::vector<std::string> free;  // FitSetup::parameters, the coordinates of the problem's one block
};
FittedProblem fitted_problem(std::span<const io::CsvTable> tables, const FitOptions& options,
                             Context& context);
/// Fits the model to the tables by minimize(). Throws InputError for an unknown column, a model that names the
/// response or has no parameters, fewer rows than parameters, or a start at which the model is not finite.
FitResult fit(std::span<const io::CsvTable> tables, const FitOptions& options, Context& context);
inline FitResult fit(const io::CsvTable& table, const FitOptions& options, Context& context) {
  return fit(std::span(&table, 1), options, context);
}

/// Values for the free parameters that `initial` lacks. Parameters in which the model is linear follow from the others by
/// linear least squares. The others are tried at values that the first column of x suggests: positions within its range,
/// widths and rates by its length, half periods of sines and cosines. A few damped steps improve the best of these, and
/// the least sum of squares wins. Looks at 256 rows at most. Of several tables each is searched by itself; a shared parameter
/// starts at the median of what they say, with which the others are searched again.
std::map<std::string, double> find_start(std::span<const io::CsvTable> tables, const FitOptions& options);
inline std::map<std::string, double> find_start(const io::CsvTable& table, const FitOptions& options) {
  return find_start(std::span(&table, 1), options);
}

}  // namespace lockstep::solve
