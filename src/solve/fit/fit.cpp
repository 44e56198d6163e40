#include "solve/fit/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "autodiff/host_program.hpp"
#include "solve/fit/distributions.hpp"
#include "solve/fit/fit_statistics.hpp"
#include "solve/fit/profile.hpp"
#include "solve/fit/residual_tests.hpp"

namespace lockstep::solve {
namespace {

struct FitProblem {
  Problem problem;
  BlockSet parameters;
};
FitProblem build(const FitSetup& setup, const FitOptions& options, std::span<const double> start) {
  const size_t count = setup.parameters.size();
  FitProblem out;
  out.parameters = out.problem.add_blocks("parameters", euclidean(int(count)), start);
  for (size_t k = 0; k < setup.sets.size(); ++k) {
    const FitSetup::DataSet& set = setup.sets[k];
    const int y = int(set.x.size());
    TermType type;
    type.name = options.terms.empty() ? "fit" : options.terms[k];
    type.slots = {int(count)};
    type.data = y + 2;  // x, y, weight
    type.loss = options.loss;
    type.residual = [&](const TermArguments& a) {
      const Value model = setup.build(
          a.graph(), k, [&](size_t c) { return a.data(int(c)); }, [&](size_t p) { return a.x(0, int(p)); });
      return std::vector{(a.data(y) - model) * a.data(y + 1)};
    };
    std::vector<double> data;
    for (size_t row = 0; row < set.rows(); ++row) {
      for (const std::vector<double>* column : set.x) data.push_back((*column)[row]);
      data.push_back((*set.y)[row]);
      data.push_back(set.weight(row));
    }
    out.problem.add_terms(type, {out.parameters}, std::vector<int32_t>(set.rows(), 0), data);
  }
  for (size_t p = 0; p < count; ++p)
    if (const auto range = setup.bounds.find(setup.parameters[p]); range != setup.bounds.end())
      out.problem.bound(out.parameters, 0, int(p), range->second.first, range->second.second);
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

/// Weighted residuals and their derivatives to the free parameters, at `values` of these.
struct Linearised {
  Eigen::VectorXd residuals;
  Eigen::MatrixXd jacobian;
  std::vector<double> weights;
};

using ColumnList = std::vector<const std::vector<double>*>;
/// The model of a data set and its derivatives to the free parameters by row of columns of x: f(row, numbers).
template <class F>
void each_row(const FitSetup& setup, size_t set, const ColumnList& x, size_t rows,
              const std::vector<double>& values, F f) {
  const size_t count = setup.parameters.size();
  FitLeaves leaves(setup, set);
  std::vector<autodiff::Value> outputs{leaves.value}, inputs;
  for (uint32_t p = 0; p < count; ++p) inputs.push_back(leaves.graph.leaf_value(p));
  for (const autodiff::Value& g : autodiff::gradient(leaves.value, inputs)) outputs.push_back(g);
  std::vector<double> point = values;
  point.resize(count + x.size());
  const autodiff::HostProgram<double> program(outputs);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t c = 0; c < x.size(); ++c) point[count + c] = (*x[c])[row];
    f(row, program(point));
  }
}

Linearised linearise(const FitSetup& setup, const std::vector<double>& values, FitResult& out) {
  const size_t count = setup.parameters.size();
  Linearised at{Eigen::VectorXd(setup.rows), Eigen::MatrixXd(setup.rows, count), {}};
  double mean = 0, weights = 0, total = 0;
  for (const FitSetup::DataSet& set : setup.sets)
    for (size_t row = 0; row < set.rows(); ++row) {
      const double w = set.weight(row) * set.weight(row);
      mean += w * (*set.y)[row], weights += w;
    }
  mean /= weights;
  for (size_t k = 0; k < setup.sets.size(); ++k) {
    const FitSetup::DataSet& set = setup.sets[k];
    each_row(setup, k, set.x, set.rows(), values, [&](size_t row, const std::vector<double>& found) {
      const auto to = Eigen::Index(out.fitted.size());
      const double w = set.weight(row), d = w * ((*set.y)[row] - mean);
      const double r = at.residuals[to] = w * ((*set.y)[row] - found[0]);
      for (size_t p = 0; p < count; ++p) at.jacobian(to, Eigen::Index(p)) = -w * found[p + 1];
      at.weights.push_back(w);
      out.fitted.push_back(found[0]);
      out.residual_sum_of_squares += r * r, total += d * d;
    });
  }
  out.degrees_of_freedom = int64_t(setup.rows) - int64_t(count);
  out.r_squared = total > 0 ? 1 - out.residual_sum_of_squares / total : 1;
  return at;
}

/// Values, errors and covariance of all parameters by those of the free ones.
void spread_to_all(const FitSetup& setup, const FitStatistics& statistics, FitResult& out,
                   const std::vector<double>& start, const std::vector<double>& values) {
  const size_t all = setup.names.size(), count = values.size();
  const auto f = Eigen::Index(count);
  Eigen::MatrixXd slopes = Eigen::MatrixXd::Zero(Eigen::Index(all), f);
  for (size_t p = 0; p < all; ++p) {
    autodiff::Tape graph;
    std::vector<autodiff::Value> leaves;
    for (const std::string& name : setup.parameters) leaves.push_back(graph.variable(name));
    const autodiff::Value value =
        setup.build_parameter(graph, setup.names[p], [&](size_t k) { return leaves[k]; });
    std::vector<autodiff::Value> outputs{value};
    for (const autodiff::Value& g : autodiff::gradient(value, leaves)) outputs.push_back(g);
    const std::vector<double> at = autodiff::evaluate<double>(outputs, values);
    out.values.push_back(at[0]);
    out.initial.push_back(autodiff::evaluate<double>(value, start));
    for (size_t k = 0; k < count; ++k) slopes(Eigen::Index(p), Eigen::Index(k)) = at[k + 1];
    if (const std::string* text = setup.constraint_of(setup.names[p])) out.constraint[setup.names[p]] = *text;
  }
  const bool known = !statistics.covariance.empty();
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(f, f);
  if (known) covariance = Eigen::Map<const Eigen::MatrixXd>(statistics.covariance.data(), f, f);
  for (size_t p = 0; p < all; ++p) {
    const auto free = std::find(setup.parameters.begin(), setup.parameters.end(), setup.names[p]);
    const auto row = slopes.row(Eigen::Index(p));
    const double variance = known ? row.dot(covariance * row.transpose()) : 0;
    out.standard_errors.push_back(
        free != setup.parameters.end()
            ? statistics.standard_errors[size_t(free - setup.parameters.begin())]
            : (variance > 0 ? std::sqrt(variance) : std::numeric_limits<double>::quiet_NaN()));
  }
  const auto finite = [](double error) { return std::isfinite(error); };
  if (std::none_of(out.standard_errors.begin(), out.standard_errors.end(), finite))
    out.standard_errors.clear();
  if (!known) return;
  const Eigen::MatrixXd whole = slopes * covariance * slopes.transpose();
  out.covariance.assign(whole.data(), whole.data() + whole.size());
}

/// Rows of each data set by its first column of x.
std::vector<size_t> order_of_rows(const FitSetup& setup) {
  std::vector<size_t> order(setup.rows);
  std::iota(order.begin(), order.end(), size_t(0));
  size_t first = 0;
  for (const FitSetup::DataSet& set : setup.sets) {
    const auto begin = order.begin() + int64_t(first), end = begin + int64_t(set.rows());
    if (!set.x.empty())
      std::stable_sort(begin, end, [&, first](size_t a, size_t b) {
        return (*set.x[0])[a - first] < (*set.x[0])[b - first];
      });
    first += set.rows();
  }
  return order;
}

/// The curve at FitOptions::at, with bands where `bands`.
FitCurve curve_at(const FitSetup& setup, const FitOptions& options, const FitMinimum& minimum, bool bands) {
  const io::CsvTable& table = *options.at;
  const std::vector<double>* sigma = nullptr;
  if (std::ranges::find(table.names, options.sigma) != table.names.end())
    sigma = &table.columns[table.column(options.sigma, "at")];
  ColumnList x;
  for (const std::string& name : options.x) x.push_back(&table.columns[table.column(name, "at")]);
  FitCurve out;
  out.rows = int64_t(table.rows());
  const auto count = Eigen::Index(setup.parameters.size());
  Eigen::MatrixXd slopes(out.rows * int64_t(setup.sets.size()), count);
  std::vector<double> weights;
  for (size_t k = 0; k < setup.sets.size(); ++k)
    each_row(setup, k, x, table.rows(), minimum.values, [&](size_t row, const std::vector<double>& found) {
      const double w = sigma ? 1 / (*sigma)[row] : 1;
      const auto to = Eigen::Index(weights.size());
      for (Eigen::Index p = 0; p < count; ++p) slopes(to, p) = w * found[size_t(p) + 1];
      weights.push_back(w), out.fitted.push_back(found[0]);
    });
  if (!bands) return out;
  FitBands found = bands_of(minimum, slopes, weights);
  out.confidence = std::move(found.confidence);
  if (sigma || options.sigma.empty()) out.prediction = std::move(found.prediction);
  return out;
}

/// Statistics of the parameters by residuals and derivatives.
void add_statistics(const FitSetup& setup, const FitOptions& options, FitProblem& made, Context& context,
                    const std::vector<double>& start, FitResult& out) {
  const auto found = made.problem.values(made.parameters);
  const std::vector<double> values(found.begin(), found.end());
  const size_t count = values.size();
  const Linearised at = linearise(setup, values, out);
  std::vector<uint8_t> held(count, 0);
  std::vector<std::pair<double, double>> bounds(
      count, {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()});
  for (size_t p = 0; p < count; ++p) {
    const auto range = setup.bounds.find(setup.parameters[p]);
    if (range == setup.bounds.end()) continue;
    bounds[p] = range->second;
    held[p] = at_bound(values[p], range->second, options.options.precision);
    if (held[p]) out.at_bound.push_back(setup.parameters[p]);
  }
  const bool absolute = options.absolute_sigma;
  const FitStatistics statistics = fit_statistics(at.residuals, at.jacobian, held, options.loss, absolute);
  for (size_t p = 0; p < count; ++p)
    if (statistics.undetermined[p]) out.undetermined.push_back(setup.parameters[p]);
  out.singular = !out.undetermined.empty();
  // Without degrees of freedom the residuals contain no information on their variance.
  if (out.degrees_of_freedom > 0) out.residual_standard_deviation = statistics.deviation;
  spread_to_all(setup, statistics, out, start, values);
  std::vector<size_t> rows;
  for (const FitSetup::DataSet& set : setup.sets) rows.push_back(set.rows());
  out.tests = residual_tests({at.residuals.data(), setup.rows}, rows, order_of_rows(setup), count);
  if (options.loss.kind != RobustLoss::Kind::none) out.tests.akaike.reset(), out.tests.bayes.reset();
  const double s = out.residual_standard_deviation;
  const FitMinimum minimum{
      made.problem,
      made.parameters,
      values,
      statistics.standard_errors,
      statistics.covariance,
      bounds,
      out.residual_sum_of_squares,
      absolute ? 1 : s * s,
      absolute ? std::numeric_limits<double>::infinity() : double(out.degrees_of_freedom)};
  const bool known = absolute || out.degrees_of_freedom > 0;
  const bool bands = known && options.bands && !statistics.covariance.empty();
  if (options.at) out.at = curve_at(setup, options, minimum, bands);
  if (!known) return;
  if (bands) out.bands = bands_of(minimum, at.jacobian, at.weights);
  if (options.profile)
    out.profile = profile_intervals(minimum, setup.parameters, context, options.options, out.summary.notes);
}

/// Whether chi squared is one that the degrees of freedom allow: its cube root is nearly normal (Wilson and Hilferty 1931).
void judge_chi_squared(const FitOptions& options, FitResult& out) {
  constexpr double kDeviations = 5;
  const double k = double(out.degrees_of_freedom), spread = 2 / (9 * k);
  if (options.sigma.empty() || options.loss.kind != RobustLoss::Kind::none || !(k > 0)) return;
  out.chi_squared = out.residual_sum_of_squares;
  out.chi_squared_probability = chi_squared_tail(*out.chi_squared, k);
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

FittedProblem fitted_problem(std::span<const io::CsvTable> tables, const FitOptions& options,
                             Context& context) {
  const FitSetup setup(tables, options);
  if (options.loss.kind != RobustLoss::Kind::none && (options.profile || options.absolute_sigma))
    throw InputError(
        options.profile ? "profile likelihood with a robust loss" : "absolute sigma with a robust loss",
        "fit", "no loss");
  FitResult out;
  out.parameters = setup.names;
  const std::map<std::string, double> found = find_start(tables, options);
  std::vector<double> start;
  for (const std::string& name : setup.parameters) start.push_back(found.at(name));
  FitProblem made = build(setup, options, start);
  out.summary = minimize(made.problem, context, options.options);
  if (options.x.empty())
    out.summary.notes.push_back(fmt::format("the model names no column of the table: {} are parameters",
                                            fmt::join(setup.names, ", ")));
  add_statistics(setup, options, made, context, start, out);
  judge_chi_squared(options, out);
  std::vector<int> held;
  for (size_t p = 0; p < setup.parameters.size(); ++p)
    if (std::ranges::find(out.at_bound, setup.parameters[p]) != out.at_bound.end()) held.push_back(int(p));
  if (held.size() == setup.parameters.size())
    made.problem.fix(made.parameters, 0);
  else
    made.problem.fix_coordinates(made.parameters, 0, held);
  return {std::move(out), std::move(made.problem), setup.parameters};
}

FitResult fit(std::span<const io::CsvTable> tables, const FitOptions& options, Context& context) {
  return fitted_problem(tables, options, context).result;
}

}  // namespace lockstep::solve
