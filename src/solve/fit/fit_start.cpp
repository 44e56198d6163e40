// Starts of a fit: what scales every parameter has follows from the model's symmetries, candidates from the columns, and
// the best of them after a few damped steps is the start.
#include <Eigen/Dense>
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>

#include "autodiff/host_values.hpp"
#include "core/numbers/random.hpp"
#include "lockstep/error.hpp"
#include "solve/fit/fit_setup.hpp"
#include "solve/fit/fit_statistics.hpp"

namespace lockstep::solve {
namespace {

using autodiff::Op;
using Eigen::Index;

constexpr size_t kMostRows = 256;             // of the table that are looked at, spread evenly
constexpr size_t kMostCandidates = 6000;      // of the nonlinear parameters together
constexpr size_t kMostEvaluations = 800'000;  // candidates times rows
constexpr size_t kRefined = 12;               // candidates that damped steps improve
constexpr int kSteps = 40;

/// Outputs by row: nodes in their order, each for all rows.
class Rows {
 public:
  Rows(std::span<const Value> outputs, size_t rows) : graph_(outputs[0].graph()), rows_(rows) {
    order_ = autodiff::reachable(outputs);
    at_.resize(graph_.size());
    for (size_t k = 0; k < order_.size(); ++k) at_[order_[k]] = k;
    values_.resize(order_.size() * rows);
    for (const Value& v : outputs) outputs_.push_back(at_[v.id()]);
  }
  /// `leaf(number, row)`.
  template <class Leaf>
  void evaluate(const Leaf& leaf) {
    std::vector<double> operands;
    for (size_t k = 0; k < order_.size(); ++k) {
      const autodiff::Node& node = graph_.node(order_[k]);
      double* const to = &values_[k * rows_];
      operands.resize(node.args.size());
      for (size_t r = 0; r < rows_; ++r) {
        if (node.op == Op::constant)
          to[r] = std::bit_cast<double>(node.imm);
        else if (node.op == Op::leaf)
          to[r] = leaf(size_t(node.imm), r);
        else {
          for (size_t a = 0; a < operands.size(); ++a) operands[a] = values_[at_[node.args[a]] * rows_ + r];
          to[r] = autodiff::host::apply<double>(node.op, node.imm, std::span<const double>(operands));
        }
      }
    }
  }
  Eigen::Map<const Eigen::VectorXd> output(size_t k) const {
    return {&values_[outputs_[k] * rows_], Index(rows_)};
  }

 private:
  const autodiff::Tape& graph_;
  size_t rows_;
  std::vector<uint32_t> order_;
  std::vector<size_t> at_, outputs_;
  std::vector<double> values_;
};

/// Parameters in which the model is jointly linear: none of their derivatives depends on any of them.
std::vector<uint32_t> linear_parameters(FitLeaves& leaves, const std::vector<bool>& free) {
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

/// How a nonlinear parameter goes with the first column of x: if x is measured in units s times as small, it is s^power
/// times as large, the linear parameters following; moved with x, it is a position.
struct Symmetry {
  std::optional<double> power;
  bool position = false;
};

class Search {
 public:
  Search(const io::CsvTable& table, const FitOptions& options)
      : setup_(std::span(&table, 1), options), set_(setup_.sets[0]), leaves_(setup_, 0) {
    const size_t count = setup_.parameters.size();
    point_.assign(count, 1);
    std::vector<bool> free(count);
    for (size_t p = 0; p < count; ++p) {
      const auto given = setup_.initial.find(setup_.parameters[p]);
      free[p] = given == setup_.initial.end();
      if (free[p])
        free_.push_back(uint32_t(p));
      else
        point_[p] = given->second;
    }
    linear_ = linear_parameters(leaves_, free);
    for (const uint32_t p : free_)
      if (std::find(linear_.begin(), linear_.end(), p) == linear_.end()) nonlinear_.push_back(p);
    choose_rows(std::min(kMostRows, table.rows()));
  }

  std::vector<double> best() {
    std::vector<std::vector<double>> candidates;
    for (const uint32_t p : nonlinear_) candidates.push_back(candidates_of(p));
    thin(candidates);
    size_t count = 1;
    for (const auto& c : candidates) count *= c.size();
    const size_t rows = std::min(rows_.size(), std::max<size_t>(32, kMostEvaluations / count));
    if (rows < rows_.size()) choose_rows(rows);
    std::vector<std::pair<double, std::vector<double>>> found = try_all(candidates);
    choose_rows(std::min(kMostRows, setup_.rows));
    std::vector<double> best = found.empty() ? point_ : found.front().second;
    double least = std::numeric_limits<double>::infinity();
    for (auto& [_, start] : found) {
      const double cost = refine(start);
      if (cost < least * (1 - 1e-9)) least = cost, best = start;
    }
    return best;
  }
  const std::vector<std::string>& parameters() const { return setup_.parameters; }

 private:
  void choose_rows(size_t count) {
    rows_.resize(count);
    for (size_t r = 0; r < count; ++r) rows_[r] = r * setup_.rows / count;
    std::vector<Value> outputs{leaves_.value};
    for (const uint32_t p : free_)
      outputs.push_back(autodiff::gradient(leaves_.value, {leaves_.graph.leaf_value(p)})[0]);
    derivatives_.emplace(outputs, count);
    outputs.resize(1);
    for (const uint32_t p : linear_)
      outputs.push_back(autodiff::gradient(leaves_.value, {leaves_.graph.leaf_value(p)})[0]);
    columns_.emplace(outputs, count);
  }
  double leaf(const std::vector<double>& at, size_t number, size_t row) const {
    const size_t count = setup_.parameters.size();
    return number < count ? at[number] : (*set_.x[number - count])[rows_[row]];
  }
  double clamped(uint32_t p, double value) const {
    const auto range = setup_.bounds.find(setup_.parameters[p]);
    return range == setup_.bounds.end() ? value
                                        : std::clamp(value, range->second.first, range->second.second);
  }
  Eigen::VectorXd weighted(const Eigen::VectorXd& column) const {
    Eigen::VectorXd out(column.size());
    for (Index r = 0; r < column.size(); ++r) out[r] = column[r] * set_.weight(rows_[size_t(r)]);
    return out;
  }
  Eigen::VectorXd response() const {
    Eigen::VectorXd y(Index(rows_.size()));
    for (Index r = 0; r < y.size(); ++r) y[r] = (*set_.y)[rows_[size_t(r)]];
    return y;
  }

  /// The linear parameters by least squares; those that cross a bound stay there and the others are solved again. Gives the
  /// sum of squares, infinite where the model is not finite.
  double solve_linear(std::vector<double>& at) {
    for (const uint32_t p : linear_) at[p] = 0;
    columns_->evaluate([&](size_t number, size_t row) { return leaf(at, number, row); });
    Eigen::VectorXd b = weighted(response() - columns_->output(0));
    Eigen::MatrixXd a(b.size(), Index(linear_.size()));
    for (size_t k = 0; k < linear_.size(); ++k) a.col(Index(k)) = weighted(columns_->output(k + 1));
    if (!a.allFinite() || !b.allFinite()) return std::numeric_limits<double>::infinity();
    std::vector<Index> open(linear_.size());
    std::iota(open.begin(), open.end(), Index(0));
    while (!open.empty()) {
      const Eigen::MatrixXd part = a(Eigen::all, open);
      const Eigen::VectorXd solved = least_solution(part, b);
      std::vector<Index> inside;
      for (size_t k = 0; k < open.size(); ++k) {
        const uint32_t p = linear_[size_t(open[k])];
        at[p] = clamped(p, solved[Index(k)]);
        if (at[p] == solved[Index(k)]) inside.push_back(open[k]);
      }
      if (inside.size() == open.size()) {
        b -= part * solved;
        break;
      }
      for (size_t k = 0; k < open.size(); ++k)
        if (std::find(inside.begin(), inside.end(), open[k]) == inside.end())
          b -= part.col(Index(k)) * at[linear_[size_t(open[k])]];
      open = inside;
    }
    const double cost = b.squaredNorm();
    return std::isfinite(cost) ? cost : std::numeric_limits<double>::infinity();
  }

  /// The best candidates with their sums of squares, best first.
  std::vector<std::pair<double, std::vector<double>>> try_all(
      const std::vector<std::vector<double>>& candidates) {
    std::vector<std::pair<double, std::vector<double>>> found;
    std::vector<size_t> digit(candidates.size(), 0);
    for (bool more = true; more;) {
      std::vector<double> at = point_;
      for (size_t k = 0; k < digit.size(); ++k) at[nonlinear_[k]] = candidates[k][digit[k]];
      if (const double cost = solve_linear(at); std::isfinite(cost)) {
        const auto place = std::upper_bound(found.begin(), found.end(), cost,
                                            [](double c, const auto& other) { return c < other.first; });
        if (place != found.end() || found.size() < kRefined) found.insert(place, {cost, std::move(at)});
        if (found.size() > kRefined) found.pop_back();
      }
      more = false;
      for (size_t k = 0; k < digit.size() && !more; ++k) {
        digit[k] = (digit[k] + 1) % candidates[k].size();
        more = digit[k] != 0;
      }
    }
    return found;
  }

  /// Levenberg-Marquardt over all free parameters; gives the sum of squares.
  double refine(std::vector<double>& at) {
    const auto residuals = [&](const std::vector<double>& point) -> Eigen::VectorXd {
      derivatives_->evaluate([&](size_t number, size_t row) { return leaf(point, number, row); });
      return weighted(response() - derivatives_->output(0));
    };
    Eigen::VectorXd r = residuals(at);
    double cost = r.squaredNorm(), lambda = 1e-3;
    for (int step = 0; step < kSteps && std::isfinite(cost) && lambda < 1e12; ++step) {
      Eigen::MatrixXd j(r.size(), Index(free_.size()));
      for (size_t k = 0; k < free_.size(); ++k) j.col(Index(k)) = weighted(derivatives_->output(k + 1));
      if (!j.allFinite()) break;
      Eigen::MatrixXd normal = j.transpose() * j;
      const Eigen::VectorXd slope = j.transpose() * r, diagonal = normal.diagonal();
      const double before = cost;
      for (; lambda < 1e12; lambda *= 4) {
        normal.diagonal() = (1 + lambda) * diagonal.array() + std::numeric_limits<double>::min();
        const Eigen::VectorXd delta = normal.ldlt().solve(slope);
        std::vector<double> next = at;
        for (size_t k = 0; k < free_.size(); ++k)
          next[free_[k]] = clamped(free_[k], at[free_[k]] + delta[Index(k)]);
        Eigen::VectorXd tried = residuals(next);
        if (const double c = tried.squaredNorm(); c < cost) {
          cost = c, at = std::move(next), r = std::move(tried), lambda *= 0.2;
          break;
        }
      }
      if (before - cost <= 1e-6 * before) break;
    }
    return std::isfinite(cost) ? cost : std::numeric_limits<double>::infinity();
  }

  /// Powers and positions by least squares at points of order one: x df/dx and df/dx as combinations of p df/dp, or df/dp,
  /// of the nonlinear parameters and df/dq of the linear ones.
  std::vector<Symmetry> symmetries() {
    constexpr size_t kPoints = 3, kSamples = 48;
    std::vector<Symmetry> out(nonlinear_.size());
    if (set_.x.empty() || nonlinear_.empty()) return out;
    const size_t count = setup_.parameters.size();
    std::vector<Value> outputs{
        autodiff::gradient(leaves_.value, {leaves_.graph.leaf_value(uint32_t(count))})[0]};
    for (const auto* list : {&nonlinear_, &linear_})
      for (const uint32_t p : *list)
        outputs.push_back(autodiff::gradient(leaves_.value, {leaves_.graph.leaf_value(p)})[0]);
    Rows rows(outputs, kSamples);
    std::vector<std::vector<double>> powers, moves;  // by point
    for (uint32_t point = 0; point < kPoints; ++point) {
      const auto number = [&](size_t leaf, size_t row) {
        const uint32_t of_row = leaf < count ? 0 : uint32_t(row) + 1;
        return 0.4 + 1.2 * unit_interval(philox(uint32_t(leaf), of_row, random_key(point + 1, 0)));
      };
      rows.evaluate(number);
      for (const bool scaled : {true, false}) {
        Eigen::MatrixXd a(kSamples, Index(outputs.size()) - 1);
        Eigen::VectorXd b = rows.output(0);
        for (size_t k = 0; k + 1 < outputs.size(); ++k) {
          a.col(Index(k)) = rows.output(k + 1);
          if (scaled && k < nonlinear_.size()) a.col(Index(k)) *= number(nonlinear_[k], 0);
        }
        if (scaled)
          for (Index r = 0; r < b.size(); ++r) b[r] *= number(count, size_t(r));
        if (!a.allFinite() || !b.allFinite()) return out;
        const Eigen::VectorXd solved = least_solution(a, b);
        auto& kept = scaled ? powers : moves;
        if ((b - a * solved).norm() <= 1e-7 * b.norm()) kept.push_back({});
        if (!kept.empty() && kept.size() == point + 1)
          for (size_t k = 0; k < nonlinear_.size(); ++k)
            kept.back().push_back(scaled ? -solved[Index(k)] : solved[Index(k)]);
      }
    }
    const auto constant = [&](const std::vector<std::vector<double>>& all, size_t k) {
      if (all.size() < kPoints) return false;
      return std::all_of(all.begin(), all.end(),
                         [&](const auto& v) { return std::abs(v[k] - all[0][k]) < 1e-5; });
    };
    for (size_t k = 0; k < nonlinear_.size(); ++k) {
      if (constant(powers, k)) out[k].power = std::round(powers[0][k] * 4) / 4;
      out[k].position = constant(moves, k) && std::abs(moves[0][k] + 1) < 1e-5;
    }
    return out;
  }

  /// Half periods over the span: where a sine or cosine of the parameter times x, or of x over it, is.
  std::vector<double> half_periods(uint32_t p, double span) {
    if (set_.x.empty()) return {};
    const uint32_t x = uint32_t(setup_.parameters.size());
    for (const uint32_t id : autodiff::reachable(std::span(&leaves_.value, 1))) {
      const autodiff::Node& node = leaves_.graph.node(id);
      if (node.op != Op::sin && node.op != Op::cos) continue;
      const Value turned = autodiff::Value(&leaves_.graph, node.args[0]);
      const Value rate = autodiff::gradient(turned, {leaves_.graph.leaf_value(x)})[0];
      const auto at = [&](double value) {
        std::vector<double> leaf(leaves_.graph.leaf_count(), 1.0);
        leaf[p] = value;
        return std::abs(autodiff::evaluate<double>(rate, leaf));
      };
      const double one = at(1), two = at(2);
      const bool grows = std::abs(two - 2 * one) <= 1e-9 * two, falls = std::abs(one - 2 * two) <= 1e-9 * one;
      if (!(one > 0) || !(grows || falls)) continue;
      std::vector<double> out;
      const size_t most = std::min<size_t>(rows_.size(), 160);
      for (size_t k = 1; k < most; ++k) {
        const double wanted = double(k) * std::numbers::pi / span;
        out.push_back(grows ? wanted / one : one / wanted);
      }
      return out;
    }
    return {};
  }

  std::vector<double> candidates_of(uint32_t p) {
    if (symmetries_.empty()) symmetries_ = symmetries();
    const size_t k = size_t(std::find(nonlinear_.begin(), nonlinear_.end(), p) - nonlinear_.begin());
    const Symmetry& s = symmetries_[k];
    double low = 0, high = 1, largest = 1;
    if (!set_.x.empty()) {
      const auto [least, most] = std::minmax_element(set_.x[0]->begin(), set_.x[0]->end());
      low = *least, high = *most, largest = std::max(std::abs(low), std::abs(high));
      if (!(high > low)) low = 0, high = largest > 0 ? largest : 1;
    }
    const double span = high - low;
    std::vector<double> out;
    const std::vector<double> turns = half_periods(p, span);
    if (!turns.empty()) {
      out = turns;
    } else if (s.position) {
      const auto [bottom, top] = std::minmax_element(set_.y->begin(), set_.y->end());
      out = {(*set_.x[0])[size_t(top - set_.y->begin())], (*set_.x[0])[size_t(bottom - set_.y->begin())]};
      constexpr int kPositions = 30;
      for (int n = 0; n < kPositions; ++n) out.push_back(low + span * (n + 0.5) / kPositions);
    } else if (s.power && *s.power != 0) {
      for (const double share : {0.3, 0.1, 1.0, 0.03, 3.0, 0.6, 0.2, 0.06, 0.015})
        out.push_back(std::pow(share * span, *s.power));
      if (largest > 3 * span)
        out.push_back(std::pow(largest, *s.power)), out.push_back(std::pow(3 * largest, *s.power));
      for (const double share : {0.3, 1.0}) out.push_back(-std::pow(share * span, *s.power));
    } else if (s.power) {
      out = {1, 2, 0.5, -1, 3, 0.2, 0.1, -2, 1.5};
    } else {
      out = {1 / span, 0.3 * span, 1, -1 / span, 5 / span, 0.7 * span, 0.1, 2, 20 / span, -1, 0.01};
    }
    std::vector<double> kept;
    for (const double value : out)
      if (const double v = clamped(p, value);
          std::isfinite(v) && std::find(kept.begin(), kept.end(), v) == kept.end())
        kept.push_back(v);
    return kept;
  }
  /// Fewer candidates where there are too many together: every other one of the longest list.
  static void thin(std::vector<std::vector<double>>& candidates) {
    const auto count = [&] {
      double all = 1;
      for (const auto& c : candidates) all *= double(c.size());
      return all;
    };
    while (count() > double(kMostCandidates)) {
      auto& longest = *std::max_element(candidates.begin(), candidates.end(),
                                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
      if (longest.size() < 2) return;
      for (size_t k = 1; k < longest.size(); ++k) longest.erase(longest.begin() + int64_t(k));
    }
  }

  FitSetup setup_;
  const FitSetup::DataSet& set_;
  FitLeaves leaves_;
  std::vector<double> point_;  // by parameter: those that were given
  std::vector<uint32_t> free_, linear_, nonlinear_;
  std::vector<size_t> rows_;                   // of the table
  std::optional<Rows> derivatives_, columns_;  // to the free, and to the linear parameters
  std::vector<Symmetry> symmetries_;
};

std::map<std::string, double> found_by(const io::CsvTable& table, const FitOptions& options) {
  Search search(table, options);
  const std::vector<double> best = search.best();
  std::map<std::string, double> out;
  for (size_t p = 0; p < best.size(); ++p) out[search.parameters()[p]] = best[p];
  return out;
}

/// The options of one of several data sets by itself, without numbers in the names. A constraint that names the parameters
/// of other data sets is left out: the start of what it gives is not used.
FitOptions alone(const FitOptions& options, const FitSetup& setup, size_t set) {
  FitOptions own = options;
  own.initial.clear(), own.bounds.clear(), own.constraints.clear(), own.shared.clear();
  std::vector<std::string> known = setup.model.names();  // and what their constraints name
  for (size_t k = 0; k < known.size(); ++k) {
    const std::string name = known[k], whole = setup.resolved(name, set);
    if (std::find(options.x.begin(), options.x.end(), name) != options.x.end()) continue;
    if (const std::string* text = setup.constraint_of(whole)) {
      const std::vector<std::string> used = Expression::parse(*text, "constraint").names();
      if (!std::all_of(used.begin(), used.end(), [&](const auto& n) { return setup.is_of_each(n); }))
        continue;
      own.constraints[name] = *text;
      for (const std::string& n : used)
        if (std::find(known.begin(), known.end(), n) == known.end()) known.push_back(n);
      continue;
    }
    if (const auto at = setup.initial.find(whole); at != setup.initial.end()) own.initial[name] = at->second;
    if (const auto at = setup.bounds.find(whole); at != setup.bounds.end()) own.bounds[name] = at->second;
  }
  return own;
}

/// Nothing of a data set that cannot be fitted by itself: of too few rows, or without a free parameter.
std::map<std::string, double> found_alone(const io::CsvTable& table, const FitOptions& options) {
  try {
    (void)FitSetup(std::span(&table, 1), options);
  } catch (const InputError&) { return {}; }
  return found_by(table, options);
}

}  // namespace

std::map<std::string, double> find_start(std::span<const io::CsvTable> tables, const FitOptions& options) {
  if (tables.size() == 1) return found_by(tables[0], options);
  const FitSetup setup(tables, options);
  std::map<std::string, std::vector<double>> seen;  // by name without number
  for (size_t k = 0; k < tables.size(); ++k)
    for (const auto& [name, value] : found_alone(tables[k], alone(options, setup, k)))
      seen[name].push_back(value);
  std::map<std::string, double> middle, out;
  for (auto& [name, values] : seen) {
    const auto at = values.begin() + int64_t(values.size() / 2);
    std::nth_element(values.begin(), at, values.end());
    middle[name] = *at;
    if (setup.resolved(name, 0) == name) out[name] = *at;  // all data sets have it in common
  }
  for (size_t k = 0; k < tables.size(); ++k) {
    FitOptions own = alone(options, setup, k);
    for (const auto& [name, value] : out)
      if (middle.contains(name) && setup.resolved(name, k) == name && !own.constraints.contains(name))
        own.initial[name] = value;
    std::map<std::string, double> found = found_alone(tables[k], own);
    if (found.empty()) found = middle;
    for (const auto& [name, value] : found) out.emplace(setup.resolved(name, k), value);
  }
  for (const auto& [name, value] : setup.initial) out[name] = value;
  for (const std::string& name : setup.parameters) out.emplace(name, 1);  // that only constraints name
  return out;
}

}  // namespace lockstep::solve
