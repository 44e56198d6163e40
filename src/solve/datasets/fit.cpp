#include "solve/datasets/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "solve/datasets/fit_setup.hpp"
#include "solve/datasets/fit_statistics.hpp"

namespace lockstep::solve {
namespace {

struct FitProblem {
  Problem problem;
  BlockSet parameters;
};
FitProblem build(const FitSetup& setup, const FitOptions& options, const io::CsvTable& table,
                 std::span<const double> start) {
  const size_t count = setup.parameters.size();
  TermType type;
  type.name = "fit";
  type.slots = {int(count)};
  type.data = int(setup.x.size()) + 2;  // x, y, weight
  type.loss = options.loss;
  type.residual = [&](const TermArguments& a) {
    const auto leaf = [&](const std::string& name) {
      for (size_t k = 0; k < options.x.size(); ++k)
        if (options.x[k] == name) return a.data(int(k));
      for (size_t k = 0; k < count; ++k)
        if (setup.parameters[k] == name) return a.x(0, int(k));
      throw InternalError(name, "fit", "a column or a parameter");
    };
    const int y = int(options.x.size());
    return std::vector{(a.data(y) - setup.model.build(a.graph(), leaf)) * a.data(y + 1)};
  };
  std::vector<double> data;
  for (size_t row = 0; row < table.rows(); ++row) {
    for (const std::vector<double>* column : setup.x) data.push_back((*column)[row]);
    data.push_back((*setup.y)[row]);
    data.push_back(setup.weight(row));
  }
  FitProblem out;
  out.parameters = out.problem.add_blocks("parameters", euclidean(int(count)), start);
  out.problem.add_terms(type, {out.parameters}, std::vector<int32_t>(table.rows(), 0), data);
  for (const auto& [name, range] : options.bounds) {
    const auto at =
        std::find(setup.parameters.begin(), setup.parameters.end(), name) - setup.parameters.begin();
    out.problem.bound(out.parameters, 0, int(at), range.first, range.second);
  }
  return out;
}

bool at_bound(double value, const std::pair<double, double>& range, Precision precision) {
  const double rounding = precision == Precision::f64 ? std::numeric_limits<double>::epsilon()
                                                      : double(std::numeric_limits<float>::epsilon());
  const auto near = [&](double bound) {
    return std::isfinite(bound) && std::abs(value - bound) <= 4 * rounding * std::abs(bound);
  };
  return near(range.first) || near(range.second);
}

/// Sums of squares, and what residuals and derivatives say of the parameters.
void add_statistics(const FitSetup& setup, const FitOptions& options, const io::CsvTable& table,
                    FitResult& out) {
  const size_t count = setup.parameters.size(), rows = table.rows();
  FitLeaves leaves(setup, options);
  std::vector<autodiff::Value> outputs{leaves.value}, inputs;
  for (uint32_t p = 0; p < count; ++p) inputs.push_back(leaves.graph.leaf_value(p));
  for (const autodiff::Value& g : autodiff::gradient(leaves.value, inputs)) outputs.push_back(g);
  std::vector<double> point = out.values;
  point.resize(count + setup.x.size());
  double mean = 0, weights = 0, total = 0;
  for (size_t row = 0; row < rows; ++row) {
    const double w = setup.weight(row) * setup.weight(row);
    mean += w * (*setup.y)[row], weights += w;
  }
  mean /= weights;
  Eigen::VectorXd residuals(rows);
  Eigen::MatrixXd jacobian(rows, count);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t k = 0; k < setup.x.size(); ++k) point[count + k] = (*setup.x[k])[row];
    const std::vector<double> at = autodiff::evaluate<double>(outputs, point);
    const double w = setup.weight(row), d = w * ((*setup.y)[row] - mean);
    const double r = residuals[Eigen::Index(row)] = w * ((*setup.y)[row] - at[0]);
    for (size_t p = 0; p < count; ++p) jacobian(Eigen::Index(row), Eigen::Index(p)) = -w * at[p + 1];
    out.fitted.push_back(at[0]);
    out.residual_sum_of_squares += r * r, total += d * d;
  }
  out.degrees_of_freedom = int64_t(rows) - int64_t(count);
  out.r_squared = total > 0 ? 1 - out.residual_sum_of_squares / total : 1;

  std::vector<uint8_t> held(count, 0);
  for (size_t p = 0; p < count; ++p) {
    const auto range = options.bounds.find(setup.parameters[p]);
    held[p] =
        range != options.bounds.end() && at_bound(out.values[p], range->second, options.options.precision);
    if (held[p]) out.at_bound.push_back(setup.parameters[p]);
  }
  FitStatistics statistics = fit_statistics(residuals, jacobian, held, options.loss);
  for (size_t p = 0; p < count; ++p)
    if (statistics.undetermined[p]) out.undetermined.push_back(setup.parameters[p]);
  out.singular = !out.undetermined.empty();
  // Without degrees of freedom nothing is left that the residuals' variance could be told from.
  if (out.degrees_of_freedom > 0) out.residual_standard_deviation = statistics.deviation;
  out.covariance = std::move(statistics.covariance);
  const auto known = [](double error) { return std::isfinite(error); };
  if (std::any_of(statistics.standard_errors.begin(), statistics.standard_errors.end(), known))
    out.standard_errors = std::move(statistics.standard_errors);
}

/// Whether chi squared is one that the degrees of freedom allow: its cube root is nearly normal (Wilson and Hilferty 1931).
void judge_chi_squared(const FitSetup& setup, const FitOptions& options, FitResult& out) {
  constexpr double kDeviations = 5;
  const double k = double(out.degrees_of_freedom), spread = 2 / (9 * k);
  if (!setup.sigma || options.loss.kind != RobustLoss::Kind::none || !(k > 0)) return;
  out.chi_squared = out.residual_sum_of_squares;
  const double off = (std::cbrt(*out.chi_squared / k) - (1 - spread)) / std::sqrt(spread);
  const char* const why = off > kDeviations
                              ? "the model or its minimum is wrong, or the deviations are too small"
                          : off < -kDeviations ? "the deviations are too large"
                                               : nullptr;
  if (why)
    out.summary.notes.push_back(
        fmt::format("chi squared {:.4g} contradicts the standard deviations, by which it is {} +- {:.3g}: {}",
                    *out.chi_squared, out.degrees_of_freedom, std::sqrt(2 * k), why));
}

}  // namespace

FitResult fit(const io::CsvTable& table, const FitOptions& options, Context& context) {
  const FitSetup setup(table, options);
  FitResult out;
  out.parameters = setup.parameters;
  const std::map<std::string, double> start = find_start(table, options);
  for (const std::string& name : setup.parameters) out.initial.push_back(start.at(name));
  FitProblem made = build(setup, options, table, out.initial);
  out.summary = minimize(made.problem, context, options.options);
  const auto values = made.problem.values(made.parameters);
  out.values.assign(values.begin(), values.end());
  add_statistics(setup, options, table, out);
  judge_chi_squared(setup, options, out);
  return out;
}

}  // namespace lockstep::solve
