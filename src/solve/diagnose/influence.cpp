#include "solve/diagnose/influence.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "solve/diagnose/hat.hpp"
#include "solve/fit/distributions.hpp"

namespace lockstep::solve {
namespace {

constexpr double kChecked = 1e-9;  // least 1 - leverage along a direction that other instances see
constexpr double kRounding = 100;  // sums of squares over that of rounding errors that say something

/// Of an instance, along the directions of its residuals that the others check.
struct Deleted {
  int64_t directions = 0;
  double squares = 0;  // by which the sum of squares falls without the instance
  double moved = 0;    // squared length that its removal changes J x by
};

/// With H the instance's block of the projection and e its residuals at the linear model's minimum, e^T (I - H)^-1 e and
/// e^T (I - H)^-1 H (I - H)^-1 e (Cook and Weisberg 1982, 3.6).
Deleted deleted(const Eigen::MatrixXd& h, const Eigen::VectorXd& e) {
  Deleted out;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(h);
  const Eigen::VectorXd along = eigen.eigenvectors().transpose() * e;
  for (Eigen::Index k = 0; k < along.size(); ++k) {
    const double leverage = std::max(eigen.eigenvalues()[k], 0.0), rest = 1 - leverage;
    if (!(rest > kChecked)) continue;
    ++out.directions;
    out.squares += along[k] * along[k] / rest;
    out.moved += leverage * along[k] * along[k] / (rest * rest);
  }
  return out;
}

/// Not those of weight 0.
std::vector<uint8_t> rows_that_count(const Evaluation& at) {
  std::vector<uint8_t> counts(at.residuals.size());
  for (size_t r = 0; r < counts.size(); ++r) {
    counts[r] = at.residuals[r] != 0;
    for (int64_t e = at.jacobian.first[r]; e < at.jacobian.first[r + 1]; ++e)
      counts[r] |= at.jacobian.values[size_t(e)] != 0;
  }
  return counts;
}

/// The squared rounding errors of the residuals, estimated from the magnitudes of values and derivatives.
double rounding_of(const Problem::State& state, const Columns& columns, const SparseRows& j) {
  constexpr double kEpsilon = 4e-16;
  std::vector<double> largest(size_t(state.blocks), 0);
  for (const int64_t b : columns.block)
    for (const double v : state.value(b)) largest[size_t(b)] = std::max(largest[size_t(b)], std::abs(v));
  double sum = 0;
  for (int64_t r = 0; r < j.rows; ++r) {
    double row = 0;
    for (int64_t e = j.first[size_t(r)]; e < j.first[size_t(r) + 1]; ++e)
      row += std::abs(j.values[size_t(e)]) * largest[size_t(columns.block[size_t(j.column[size_t(e)])])];
    sum += kEpsilon * kEpsilon * row * row;
  }
  return sum;
}

}  // namespace

Influence influence_at(const Problem& problem, Context& context, const Evaluation& at, const Columns& columns,
                       const Pieces& pieces, std::optional<HeldNormal>& normal) {
  const Problem::State& state = problem.state();
  const SparseRows& j = at.jacobian;
  Influence out;
  std::vector<InstanceRows> instances;
  bool energies = false;
  each_counting(state, [&](const std::string& name, int64_t number, size_t batch, const Segment&, int64_t,
                           int64_t row) {
    const ExpressionKey& expression = *state.batches[batch].expression;
    energies |= expression.energy;
    instances.push_back({row, expression.rows});
    out.instances.emplace_back().terms = name, out.instances.back().instance = number;
  });
  const auto finite = [](double v) { return std::isfinite(v); };
  if (energies)
    throw InputError("energies, which have no residuals", "solve leverage", "terms with residuals");
  if (!std::ranges::all_of(j.values, finite) || !std::ranges::all_of(at.residuals, finite))
    throw InputError("residuals or derivatives that are not finite", "solve leverage", "finite ones");
  Hat hat = dense_hat(at, instances, pieces, columns);
  if (hat.begin.size() < instances.size()) {
    if (!normal) normal.emplace(problem, context);
    hat = sparse_hat(at, instances, columns, *normal);
  }
  const std::vector<uint8_t> counts = rows_that_count(at);
  const double least = rounding_of(state, columns, j);
  std::vector<double> rest(at.residuals.size());
  double squares = 0, before = 0;
  for (size_t r = 0; r < rest.size(); ++r) {
    rest[r] = at.residuals[r] - hat.fitted[r];
    squares += rest[r] * rest[r], before += at.residuals[r] * at.residuals[r];
  }
  out.rank = hat.rank, out.rows = std::ranges::count(counts, uint8_t(1));
  if (before > kRounding * least) out.step_gain = std::max(1 - squares / before, 0.0);
  const double freedom = double(out.rows - hat.rank);
  for (size_t i = 0; i < instances.size(); ++i) {
    std::vector<Eigen::Index> own;
    for (int64_t k = 0; k < instances[i].count; ++k)
      if (counts[size_t(instances[i].first + k)]) own.push_back(k);
    if (own.empty()) continue;
    const Eigen::MatrixXd h = hat.block(i, instances[i].count)(own, own);
    Eigen::VectorXd e(Eigen::Index(own.size()));
    for (size_t k = 0; k < own.size(); ++k) e[Eigen::Index(k)] = rest[size_t(instances[i].first + own[k])];
    const Deleted without = deleted(h, e);
    InstanceInfluence& found = out.instances[i];
    found.leverage = std::clamp(h.trace() / double(own.size()), 0.0, 1.0);
    found.checked = int(without.directions);
    const double left = freedom - double(without.directions);
    if (without.directions == 0 || !(left > 0) || !(squares > kRounding * least)) continue;
    const double others = std::max(squares - without.squares, least) / left;
    const double ratio = without.squares / (double(without.directions) * others);
    found.studentized = std::sqrt(ratio);
    found.probability = fisher_tail(ratio, double(without.directions), left);
    if (hat.rank > 0) found.cook = without.moved / (double(hat.rank) * squares / freedom);
  }
  return out;
}

Influence influence_by_instance(const Problem& problem, Context& context) {
  const Columns columns(problem.state());
  EvaluateOptions wanted;
  wanted.gradient = false;
  std::optional<HeldNormal> normal;
  return influence_at(problem, context, evaluate(problem, context, wanted), columns,
                      Pieces(problem.state(), columns), normal);
}

}  // namespace lockstep::solve
