#include "solve/datasets/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "solve/datasets/expression.hpp"
#include "solve/datasets/fit_statistics.hpp"

namespace lockstep::solve {
namespace {

using autodiff::Tape;

bool among(const std::vector<std::string>& all, const std::string& name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

/// The model with its parameters told from the columns, everything checked.
struct Setup {
  Expression model;
  std::vector<std::string> parameters;
  std::vector<const std::vector<double>*> x;
  const std::vector<double>* y = nullptr;
  const std::vector<double>* sigma = nullptr;

  Setup(const io::CsvTable& table, const FitOptions& options)
      : model(Expression::parse(options.model, "model")) {
    y = &table.columns[table.column(options.y, "y")];
    for (const std::string& name : options.x) {
      x.push_back(&table.columns[table.column(name, "x")]);
      if (!among(model.names(), name))
        throw InputError(fmt::format("x column {}", name), "model",
                         fmt::format("it in \"{}\"", options.model));
    }
    if (among(model.names(), options.y))
      throw InputError(fmt::format("the response {} in \"{}\"", options.y, options.model), "model",
                       "a formula over other columns and parameters");
    for (const std::string& name : model.names())
      if (!among(options.x, name)) parameters.push_back(name);
    if (parameters.empty())
      throw InputError("no parameters", "model", "names in the model that are no columns");
    if (!options.sigma.empty()) {
      sigma = &table.columns[table.column(options.sigma, "sigma")];
      for (size_t row = 0; row < sigma->size(); ++row)
        if (!((*sigma)[row] > 0))
          throw InputError(fmt::format("standard deviation {}", (*sigma)[row]),
                           fmt::format("column {}, row {}", options.sigma, row + 1), "a positive number");
    }
    for (const auto& [name, value] : options.initial)
      if (!among(parameters, name))
        throw InputError(fmt::format("initial value of {}", name), "fit",
                         fmt::format("one of {}", fmt::join(parameters, ", ")));
    for (const auto& [name, range] : options.bounds)
      if (!among(parameters, name))
        throw InputError(fmt::format("bounds of {}", name), "fit",
                         fmt::format("one of {}", fmt::join(parameters, ", ")));
    if (table.rows() < parameters.size())
      throw InputError(fmt::format("{} rows", table.rows()), "table",
                       fmt::format("at least {}, the number of parameters", parameters.size()));
  }
  double weight(size_t row) const { return sigma ? 1 / (*sigma)[row] : 1; }
};

/// The model over leaves: parameters first, then the columns of x.
struct Leaves {
  Tape graph;
  autodiff::Value value;

  Leaves(const Setup& setup, const FitOptions& options) {
    std::map<std::string, autodiff::Value> leaf;
    for (const std::string& name : setup.parameters) leaf.emplace(name, graph.variable(name));
    for (const std::string& name : options.x) leaf.emplace(name, graph.parameter(name));
    value = setup.model.build(graph, [&](const std::string& name) { return leaf.at(name); });
  }
};

/// Parameters in which the model is jointly linear: none of their derivatives depends on any of them.
std::vector<uint32_t> linear_parameters(Leaves& leaves, const std::vector<bool>& free) {
  std::vector<uint32_t> linear;
  for (uint32_t p = 0; p < free.size(); ++p) {
    if (!free[p]) continue;
    std::vector<uint32_t> with = linear;
    with.push_back(p);
    bool ok = true;
    for (const uint32_t q : with) {
      const auto derivative = autodiff::gradient(leaves.value, {leaves.graph.leaf_value(q)});
      for (const uint32_t leaf : autodiff::leaves_of(derivative))
        ok = ok && std::find(with.begin(), with.end(), leaf) == with.end();
    }
    if (ok) linear = with;
  }
  return linear;
}

double largest(const std::vector<double>& column) {
  double out = 0;
  for (const double v : column) out = std::max(out, std::abs(v));
  return out > 0 ? out : 1;
}

/// Magnitudes worth trying for a nonlinear parameter: rates are of the order of 1 / x, positions and widths
/// of the order of x, exponents of the order of one.
std::vector<double> magnitudes(const Setup& setup, size_t nonlinear) {
  const double scale = setup.x.empty() ? 1 : largest(*setup.x[0]);
  std::vector<double> out{1 / scale, 0.3 * scale, 1,          -1 / scale, 5 / scale, 0.7 * scale,
                          0.1,       2,           20 / scale, -1,         0.01};
  const size_t kept = nonlinear <= 2   ? out.size()
                      : nonlinear == 3 ? 7
                      : nonlinear == 4 ? 4
                      : nonlinear <= 8 ? 2
                                       : 1;
  out.resize(std::min(kept, out.size()));
  return out;
}

}  // namespace

std::map<std::string, double> find_start(const io::CsvTable& table, const FitOptions& options) {
  const Setup setup(table, options);
  Leaves leaves(setup, options);
  const size_t count = setup.parameters.size();
  std::vector<double> point(count + setup.x.size(), 1);
  std::vector<bool> free(count);
  for (size_t p = 0; p < count; ++p) {
    const auto given = options.initial.find(setup.parameters[p]);
    free[p] = given == options.initial.end();
    if (!free[p]) point[p] = given->second;
  }
  // A bound can only be kept by a parameter that is chosen, not solved for.
  std::vector<bool> solvable = free;
  for (size_t p = 0; p < count; ++p)
    if (options.bounds.count(setup.parameters[p])) solvable[p] = false;
  const std::vector<uint32_t> linear = linear_parameters(leaves, solvable);
  std::vector<uint32_t> nonlinear;
  for (uint32_t p = 0; p < count; ++p)
    if (free[p] && std::find(linear.begin(), linear.end(), p) == linear.end()) nonlinear.push_back(p);

  // Value with the linear parameters at 0, and the derivative by each.
  std::vector<autodiff::Value> outputs{leaves.value};
  for (const uint32_t p : linear)
    outputs.push_back(autodiff::gradient(leaves.value, {leaves.graph.leaf_value(p)})[0]);
  constexpr size_t kRows = 256;  // at most; spread evenly over the table
  const size_t rows = std::min<size_t>(kRows, table.rows());
  const std::vector<double> tried = magnitudes(setup, nonlinear.size());
  std::vector<double> best = point;
  double best_cost = std::numeric_limits<double>::infinity();
  std::vector<size_t> digit(nonlinear.size(), 0);
  for (bool more = true; more;) {
    for (size_t k = 0; k < nonlinear.size(); ++k) {
      const auto range = options.bounds.find(setup.parameters[nonlinear[k]]);
      double value = tried[(digit[k] + k) % tried.size()];
      if (range != options.bounds.end()) value = std::clamp(value, range->second.first, range->second.second);
      point[nonlinear[k]] = value;
    }
    for (const uint32_t p : linear) point[p] = 0;
    Eigen::MatrixXd a(rows, linear.size());
    Eigen::VectorXd b(rows);
    for (size_t r = 0; r < rows; ++r) {
      const size_t row = r * table.rows() / rows;
      for (size_t k = 0; k < setup.x.size(); ++k) point[count + k] = (*setup.x[k])[row];
      const std::vector<double> at = autodiff::evaluate<double>(outputs, point);
      b[Eigen::Index(r)] = setup.weight(row) * ((*setup.y)[row] - at[0]);
      for (size_t k = 0; k < linear.size(); ++k)
        a(Eigen::Index(r), Eigen::Index(k)) = setup.weight(row) * at[k + 1];
    }
    if (a.allFinite() && b.allFinite()) {
      if (!linear.empty()) {
        const Eigen::VectorXd solved = least_solution(a, b);
        b -= a * solved;
        for (size_t k = 0; k < linear.size(); ++k) point[linear[k]] = solved[Eigen::Index(k)];
      }
      const double cost = b.squaredNorm();
      if (cost < best_cost * (1 - 1e-9)) best_cost = cost, best = point;
    }
    more = false;
    for (size_t k = 0; k < digit.size() && !more; ++k) {
      digit[k] = (digit[k] + 1) % tried.size();
      more = digit[k] != 0;
    }
  }
  std::map<std::string, double> out;
  for (size_t p = 0; p < count; ++p) out[setup.parameters[p]] = best[p];
  return out;
}

namespace {

struct FitProblem {
  Problem problem;
  BlockSet parameters;
};
FitProblem build(const Setup& setup, const FitOptions& options, const io::CsvTable& table,
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
void add_statistics(const Setup& setup, const FitOptions& options, const io::CsvTable& table,
                    FitResult& out) {
  const size_t count = setup.parameters.size(), rows = table.rows();
  Leaves leaves(setup, options);
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

}  // namespace

FitResult fit(const io::CsvTable& table, const FitOptions& options, Context& context) {
  const Setup setup(table, options);
  FitResult out;
  out.parameters = setup.parameters;
  const std::map<std::string, double> start = find_start(table, options);
  for (const std::string& name : setup.parameters) out.initial.push_back(start.at(name));
  FitProblem made = build(setup, options, table, out.initial);
  out.summary = minimize(made.problem, context, options.options);
  const auto values = made.problem.values(made.parameters);
  out.values.assign(values.begin(), values.end());
  add_statistics(setup, options, table, out);
  return out;
}

}  // namespace lockstep::solve
