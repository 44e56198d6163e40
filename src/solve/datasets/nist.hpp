// Statistical reference datasets of NIST for nonlinear regression (StRD): a file holds model, data, two
// starts and the certified values.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

struct NistProblem {
  std::string name;                           // "Misra1a"
  std::string response, model;                // both sides of the model: "log[y]", "b1 - b2*x1 * exp[-b3*x2]"
  std::vector<std::string> parameters;        // "b1" …
  std::vector<std::string> columns;           // of the data: "y", "x" or "y", "x1", "x2"
  std::array<std::vector<double>, 2> starts;  // values of the parameters
  std::vector<double> certified, deviations;  // certified values and their standard deviations
  double residual_sum_of_squares = 0;         // certified
  double residual_standard_deviation = 0;     // certified
  int degrees_of_freedom = 0;
  std::vector<double> data;  // (observations, columns)
  int64_t observations() const { return columns.empty() ? 0 : int64_t(data.size() / columns.size()); }
};

/// Reads a .dat file. Throws InputError with file and line for what is missing, odd or out of range.
NistProblem read_nist(const std::filesystem::path& file);
NistProblem parse_nist(std::string_view text, const std::string& where);

/// One block with all parameters and one residual `response - model` per observation, from start 1 or 2.
struct NistGraph {
  Problem problem;
  BlockSet parameters;
};
NistGraph build(const NistProblem& nist, int start);
/// The same with each parameter in units of `units`.
NistGraph build(const NistProblem& nist, int start, const std::vector<double>& units);

/// Options that reach the certified digits: no tolerance but those of rounding, and for the methods with
/// linear solves a QR factorisation of the Jacobian.
Options nist_options(Method method = Method::lm);

/// Digits in which `got` agrees with `certified`: -log10(|got - certified| / |certified|), of the difference
/// itself where `certified` is 0; 11, the number of certified digits, at most.
double log_relative_error(double got, double certified);

struct NistResult {
  Summary summary;
  std::vector<double> parameters;
  double lre = 0;  // least of all parameters
  double residual_sum_of_squares = 0;
};
/// Levenberg-Marquardt runs from five initial dampings, 10^-2 to 10^6 times that of the options: some starts
/// lie between several minima, and the damping decides which one attracts them. Two more damp by the identity with
/// parameters in units of the start. The least cost counts.
NistResult solve_nist(const NistProblem& nist, int start, Context& context, const Options& options);

}  // namespace lockstep::solve
