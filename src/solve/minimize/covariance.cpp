#include "lockstep/solve/covariance.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>

#include "solve/linear/cholesky/free_directions.hpp"
#include "solve/linear/cholesky/sparse_cholesky.hpp"
#include "solve/linear/normal_equations.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

constexpr double kDenseNumbers = 4e6;        // of a Jacobian that QR factorises
constexpr double kLeastScaledPivot = 1e-14;  // of the scaled matrix

[[noreturn]] void singular(const std::string& detail) {
  throw InputError("J^T J is singular: " + detail, "solve covariance",
                   "residuals that determine all variables; fix() those that may move freely");
}

/// (J^T J)^-1 by the triangular factor of J, whose condition is the root of that of J^T J.
Eigen::MatrixXd inverse_by_qr(Eigen::MatrixXd j) {
  const int64_t n = j.cols();
  Eigen::VectorXd scale(n);
  for (int64_t k = 0; k < n; ++k) {
    scale[k] = j.col(k).norm();
    if (!(scale[k] > 0)) singular("a variable that no residual depends on here");
    j.col(k) /= scale[k];
  }
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(j);
  if (qr.rank() < n) singular(fmt::format("rank {} of {}", qr.rank(), n));
  Eigen::MatrixXd inverse =
      qr.matrixR().topRows(n).triangularView<Eigen::Upper>().solve(Eigen::MatrixXd::Identity(n, n));
  inverse = qr.colsPermutation() * inverse;  // rows in the order of the unknowns
  inverse = scale.cwiseInverse().asDiagonal() * inverse;
  const Eigen::MatrixXd product = inverse * inverse.transpose();
  return 0.5 * (product + product.transpose());
}

/// The Moore-Penrose inverse of a semidefinite matrix, and the size of its null space.
std::pair<Eigen::MatrixXd, int64_t> free_inverse(const Eigen::MatrixXd& h) {
  constexpr double kNull = 1e-13;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(h);
  const Eigen::VectorXd& values = eigen.eigenvalues();
  Eigen::VectorXd inverse = Eigen::VectorXd::Zero(values.size());
  int64_t null = 0;
  for (Eigen::Index k = 0; k < values.size(); ++k) {
    if (values[k] > kNull * double(values.size()) * values[values.size() - 1])
      inverse[k] = 1 / values[k];
    else
      ++null;
  }
  return {eigen.eigenvectors() * inverse.asDiagonal() * eigen.eigenvectors().transpose(), null};
}

}  // namespace

struct Covariance::State {
  uint64_t problem = 0;  // Problem::number()
  std::vector<SetState> sets;
  std::vector<uint8_t> fixed, held;  // by block; by tangent coordinate
  NormalEquations equations;
  std::vector<int64_t> kept;   // unknowns that are not held
  std::vector<int64_t> place;  // of each unknown among them; -1: held
  std::optional<Eigen::MatrixXd> inverse;
  std::optional<SparseCholesky> cholesky;
  /// Where directions move freely, the factor holds as many coordinates, and the inverse is P G P with G the
  /// factor's, 0 at those, and P = I - N N^T.
  std::optional<FreeDirections> free;
  int64_t null_space = 0;

  const SetState& set_of(BlockSet set) const {
    if (set.id < 0 || set.id >= int(sets.size()) || (set.problem != 0 && set.problem != problem))
      throw InputError(fmt::format("block set {}", set.id), "solve covariance", "a set of the problem");
    return sets[size_t(set.id)];
  }
  /// The unknowns of a block's coordinates.
  std::vector<int64_t> unknowns(BlockSet set, int64_t block) const {
    const SetState& s = set_of(set);
    const int64_t place = s.place(block, "solve covariance");
    if (fixed[size_t(s.first_block + place)])
      throw InputError(fmt::format("block {} of {} is fixed", block, s.name), "solve covariance",
                       "blocks that move");
    const int64_t at = equations.block_at(s.first_tangent + place * s.tangent());
    if (at < 0) singular("a variable without residuals");
    std::vector<int64_t> out;
    for (int64_t k = 0; k < s.tangent(); ++k) out.push_back(equations.pattern().first[size_t(at)] + k);
    return out;
  }
  void factorise_dense(std::span<const HostBatch> batches, int64_t rows, const CovarianceOptions& options);
  void factorise_sparse(std::span<const HostBatch> batches, bool may_move);
  std::vector<double> normal_values(std::span<const HostBatch> batches) const {
    std::vector<double> values;
    equations.assemble(batches, values);
    return values;
  }
  Eigen::MatrixXd dense_normal(std::span<const HostBatch> batches) const;
  /// Columns `to` of the inverse at the rows `from`.
  Eigen::MatrixXd part(const std::vector<int64_t>& from, const std::vector<int64_t>& to) const;
};

Eigen::MatrixXd Covariance::State::dense_normal(std::span<const HostBatch> batches) const {
  const BlockPattern& pattern = equations.pattern();
  const std::vector<double> values = normal_values(batches);
  Eigen::MatrixXd h = Eigen::MatrixXd::Zero(equations.unknowns(), equations.unknowns());
  const double* from = values.data();
  for (size_t e = 0; e < pattern.rows.size(); ++e) {
    const int64_t r0 = pattern.first[size_t(pattern.rows[e])], c0 = pattern.first[size_t(pattern.columns[e])];
    for (int64_t c = 0; c < pattern.width(pattern.columns[e]); ++c)
      for (int64_t r = 0; r < pattern.width(pattern.rows[e]); ++r, ++from)
        h(r0 + r, c0 + c) = h(c0 + c, r0 + r) = *from;
  }
  return h(kept, kept);
}

void Covariance::State::factorise_dense(std::span<const HostBatch> batches, int64_t rows,
                                        const CovarianceOptions& options) {
  if (options.gauge == CovarianceOptions::Gauge::complement) {
    std::tie(inverse.emplace(), null_space) = free_inverse(dense_normal(batches));
    return;
  }
  Eigen::MatrixXd j = dense_jacobian(batches, equations, rows);
  inverse =
      inverse_by_qr(kept.size() == size_t(j.cols()) ? std::move(j) : Eigen::MatrixXd(j(Eigen::all, kept)));
}

void Covariance::State::factorise_sparse(std::span<const HostBatch> batches, bool may_move) {
  std::vector<double> values = normal_values(batches);
  const BlockPattern& pattern = equations.pattern();
  std::vector<double> added(size_t(equations.unknowns()), 0);
  for (size_t k = 0; k < added.size(); ++k) added[k] = place[k] < 0;
  if (kept.size() < added.size()) clear_rows_and_columns(pattern, added, values);
  const std::vector<double> diagonal = equations.diagonal(values);
  for (size_t k = 0; k < diagonal.size(); ++k)
    if (!(diagonal[k] + added[k] > 0) || !std::isfinite(diagonal[k]))
      singular("a variable that no residual depends on here");
  cholesky.emplace(pattern);
  if (may_move) {
    free = FreeDirections(pattern, *cholesky, values, added);
    null_space = free->count();
    for (const int64_t k : free->coordinates()) added[size_t(k)] = 1;
    if (null_space > 0) clear_rows_and_columns(pattern, added, values);
  }
  if (!cholesky->factorise(values, added) || cholesky->least_pivot() < kLeastScaledPivot)
    singular("a pivot that is zero but for rounding");
  if (free) free->complete(*cholesky);
}

Eigen::MatrixXd Covariance::State::part(const std::vector<int64_t>& from,
                                        const std::vector<int64_t>& to) const {
  Eigen::MatrixXd out = Eigen::MatrixXd::Zero(int64_t(from.size()), int64_t(to.size()));
  std::vector<double> x;
  for (size_t j = 0; j < to.size(); ++j) {
    if (place[size_t(to[j])] < 0) continue;
    if (cholesky) {
      x.assign(size_t(equations.unknowns()), 0.0);
      if (!free || !free->holds(to[j])) {
        x[size_t(to[j])] = 1;
        cholesky->solve(x);
      }
    }
    for (size_t i = 0; i < from.size(); ++i) {
      const int64_t row = place[size_t(from[i])];
      if (row < 0) continue;
      double& entry = out(int64_t(i), int64_t(j));
      entry = cholesky ? x[size_t(from[i])] : (*inverse)(row, place[size_t(to[j])]);
      if (free) entry += free->correction(from[i], to[j]);
    }
  }
  return out;
}

Covariance::Covariance(const Problem& problem, Context& context, const CovarianceOptions& options)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.problem = problem.number();
  s.sets = problem.state().sets, s.fixed = problem.state().fixed, s.held = problem.state().held;
  std::vector<HostBatch> batches;
  const auto work = [&](const Device& device) {
    Evaluator evaluator(problem, device, Precision::f64);
    evaluator.linearize();
    batches = evaluator.host_batches();
  };
  context.run_stage("solve.evaluate", work);
  s.equations = NormalEquations(batches);
  for (int64_t b = 0; b < s.equations.pattern().blocks(); ++b)
    for (int64_t i = 0; i < s.equations.pattern().width(b); ++i) {
      const int64_t coordinate = s.equations.columns()[size_t(b)] + i;
      const bool held = !s.held.empty() && s.held[size_t(coordinate)];
      s.place.push_back(held ? -1 : int64_t(s.kept.size()));
      if (!held) s.kept.push_back(int64_t(s.place.size()) - 1);
    }
  int64_t rows = 0;
  bool energies = false;
  for (const HostBatch& batch : batches) rows += batch.rows * batch.instances, energies |= batch.energy;
  const bool free = options.gauge == CovarianceOptions::Gauge::complement;
  const double numbers = double(rows) * double(s.equations.unknowns());
  const bool dense = free ? int64_t(s.kept.size()) <= options.dense_complement
                          : !energies && rows >= int64_t(s.kept.size()) && numbers <= kDenseNumbers;
  if (dense)
    s.factorise_dense(batches, rows, options);
  else
    s.factorise_sparse(batches, free);
}
Covariance::~Covariance() = default;
Covariance::Covariance(Covariance&&) noexcept = default;

int64_t Covariance::null_space() const { return state_->null_space; }

std::vector<double> Covariance::block(BlockSet set, int64_t number) const {
  const std::pair<BlockSet, int64_t> one(set, number);
  return joint({&one, 1});
}

std::vector<double> Covariance::block(BlockSet a, int64_t block_a, BlockSet b, int64_t block_b) const {
  const Eigen::MatrixXd m = state_->part(state_->unknowns(a, block_a), state_->unknowns(b, block_b));
  std::vector<double> out;
  for (Eigen::Index i = 0; i < m.rows(); ++i)
    for (Eigen::Index j = 0; j < m.cols(); ++j) out.push_back(m(i, j));
  return out;
}

std::vector<double> Covariance::joint(std::span<const std::pair<BlockSet, int64_t>> blocks) const {
  std::vector<int64_t> unknowns;
  for (const auto& [set, number] : blocks)
    for (const int64_t k : state_->unknowns(set, number)) unknowns.push_back(k);
  const Eigen::MatrixXd m = state_->part(unknowns, unknowns);
  std::vector<double> out;
  for (Eigen::Index i = 0; i < m.rows(); ++i)
    for (Eigen::Index j = 0; j < m.cols(); ++j)
      out.push_back(state_->cholesky ? 0.5 * (m(i, j) + m(j, i)) : m(i, j));
  return out;
}

std::vector<double> Covariance::marginals(BlockSet set) const {
  const State& s = *state_;
  const SetState& own = s.set_of(set);
  const size_t t = size_t(own.tangent());
  std::vector<double> out(size_t(own.count) * t * t, 0), entries;
  const BlockPattern& pattern = s.equations.pattern();
  std::vector<int64_t> diagonal(size_t(pattern.blocks()), -1);  // first number of each block's own entry
  if (s.cholesky) {
    entries = s.cholesky->inverse_entries();
    const std::vector<int64_t> offsets = pattern.offsets();
    for (size_t e = 0; e < pattern.rows.size(); ++e)
      if (pattern.rows[e] == pattern.columns[e]) diagonal[size_t(pattern.rows[e])] = offsets[e];
  }
  for (int64_t b = 0; b < own.count; ++b) {
    if (s.fixed[size_t(own.first_block + b)]) continue;
    const std::vector<int64_t> unknowns = s.unknowns(set, own.number(b));
    const int64_t at = s.equations.block_at(own.first_tangent + b * own.tangent());
    double* const to = out.data() + size_t(b) * t * t;
    for (size_t i = 0; i < t; ++i)
      for (size_t j = 0; j < t; ++j) {
        const int64_t row = s.place[size_t(unknowns[i])], column = s.place[size_t(unknowns[j])];
        if (row < 0 || column < 0) continue;
        double& entry = to[i * t + j];
        if (!s.cholesky) {
          entry = (*s.inverse)(row, column);
          continue;
        }
        const bool known = !s.free || !(s.free->holds(unknowns[i]) || s.free->holds(unknowns[j]));
        entry = known ? entries[size_t(diagonal[size_t(at)]) + j * t + i] : 0;
        if (s.free) entry += s.free->correction(unknowns[i], unknowns[j]);
      }
  }
  return out;
}

std::vector<double> covariance(const Problem& problem, Context& context,
                               std::span<const std::pair<BlockSet, int64_t>> blocks) {
  return Covariance(problem, context).joint(blocks);
}

}  // namespace lockstep::solve
