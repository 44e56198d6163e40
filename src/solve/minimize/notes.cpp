#include "solve/minimize/notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "solve/evaluate/evaluator_state.hpp"
#include "solve/linear/normal_equations.hpp"
#include "solve/model/counting.hpp"
#include "solve/model/rank.hpp"

namespace lockstep::solve {
namespace {

constexpr size_t kNamed = 5;           // blocks that a line names
constexpr double kMostProducts = 2e7;  // of the factorisation

bool moves(const Problem::State& state, const SetState& set, int64_t block) {
  for (int c = 0; c < set.tangent(); ++c)
    if (state.moves(block, set.first_tangent + (block - set.first_block) * set.tangent() + c)) return true;
  return false;
}

/// The blocks that move, by the part that they belong to. Blocks that are held connect as well.
std::vector<std::vector<int64_t>> parts_of(const Problem::State& state) {
  std::vector<int64_t> parent(size_t(state.blocks));
  std::iota(parent.begin(), parent.end(), int64_t(0));
  const auto root = [&](int64_t b) {
    while (parent[size_t(b)] != b) b = parent[size_t(b)] = parent[size_t(parent[size_t(b)])];
    return b;
  };
  for (const Batch& batch : state.batches)
    each_that_counts(batch, [&](auto blocks, const Segment&, int64_t) {
      const int64_t first = root(blocks[0]);
      for (const int32_t other : blocks.subspan(1)) parent[size_t(root(other))] = first;
    });
  std::map<int64_t, std::vector<int64_t>> by_root;
  for (const SetState& set : state.sets)
    for (int64_t b = set.first_block; b < set.first_block + set.count; ++b)
      if (moves(state, set, b)) by_root[root(b)].push_back(b);
  std::vector<std::vector<int64_t>> parts;
  for (auto& [_, blocks] : by_root) parts.push_back(std::move(blocks));
  return parts;
}

std::string name_of(const Problem::State& state, int64_t block) {
  const SetState& set = state.set_of(block);
  return set.count == 1 ? set.name : fmt::format("{} {}", set.name, set.number(block - set.first_block));
}

std::string list_of(const Problem::State& state, const std::vector<int64_t>& blocks) {
  std::vector<std::string> names;
  for (size_t k = 0; k < std::min(kNamed, blocks.size()); ++k) names.push_back(name_of(state, blocks[k]));
  const size_t more = blocks.size() - names.size();
  return fmt::format("{}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

/// Whether J has full rank beyond doubt: with columns of length 1, J^T J - t I is positive definite, so that the least
/// singular value is above sqrt(t). A fraction of the time of a factorisation of J; false says nothing.
bool surely_full(const NormalEquations& equations, const std::vector<HostBatch>& batches,
                 const std::vector<int64_t>& kept) {
  constexpr double kLeast = 1e-11;  // t; rounding of the products is far below
  const BlockPattern& pattern = equations.pattern();
  std::vector<double> values;
  equations.assemble(batches, values);
  const Eigen::Index n = equations.unknowns();
  Eigen::MatrixXd s = Eigen::MatrixXd::Zero(n, n);
  const double* from = values.data();
  for (size_t e = 0; e < pattern.rows.size(); ++e) {
    const int64_t row = pattern.first[size_t(pattern.rows[e])],
                  column = pattern.first[size_t(pattern.columns[e])];
    const int64_t height = pattern.width(pattern.rows[e]), width = pattern.width(pattern.columns[e]);
    s.block(row, column, height, width) = Eigen::Map<const Eigen::MatrixXd>(from, height, width);
    from += height * width;
  }
  if (int64_t(kept.size()) < n) s = Eigen::MatrixXd(s.selfadjointView<Eigen::Lower>())(kept, kept);
  const Eigen::VectorXd length = s.diagonal().cwiseSqrt();
  if (!(length.minCoeff() > 0) || !length.allFinite()) return false;
  const Eigen::VectorXd scale = length.cwiseInverse();
  s = scale.asDiagonal() * s * scale.asDiagonal();
  s.diagonal().array() -= kLeast;
  return Eigen::LLT<Eigen::MatrixXd>(s).info() == Eigen::Success;
}

}  // namespace

ColumnDirections::ColumnDirections(Eigen::MatrixXd j) {
  for (Eigen::Index k = 0; k < j.cols(); ++k)
    if (const double length = j.col(k).stableNorm(); length > 0) j.col(k) /= length;
  qr_.compute(j);
}

const Eigen::BDCSVD<Eigen::MatrixXd>& ColumnDirections::decomposed() {
  if (!svd_) {
    const Eigen::MatrixXd upper =
        qr_.matrixR().topRows(std::min(qr_.rows(), qr_.cols())).triangularView<Eigen::Upper>();
    svd_.emplace(upper, Eigen::ComputeFullV);
  }
  return *svd_;
}

Eigen::Index ColumnDirections::rank() {
  const Eigen::VectorXd& s = decomposed().singularValues();
  Eigen::Index rank = 0;
  while (rank < s.size() && s[rank] > kRank * s[0]) ++rank;
  return rank;
}

std::pair<Eigen::VectorXd, int64_t> ColumnDirections::free() {
  const Eigen::Index n = qr_.cols();
  const auto pivot = [&](Eigen::Index k) { return std::abs(qr_.matrixR()(k, k)); };
  constexpr double kClear = 1e-10;  // of the last pivot: full rank beyond doubt, and nothing more to compute
  if (qr_.rows() >= n && pivot(n - 1) > kClear * pivot(0)) return {Eigen::VectorXd::Zero(n), 0};
  const Eigen::Index rank = this->rank();
  const Eigen::MatrixXd basis = qr_.colsPermutation() * decomposed().matrixV().rightCols(n - rank);
  return {basis.rowwise().squaredNorm(), n - rank};
}

std::pair<double, Eigen::VectorXd> ColumnDirections::weakest() {
  const Eigen::Index rank = this->rank();
  if (rank == 0) return {1, Eigen::VectorXd::Zero(qr_.cols())};
  const Eigen::VectorXd& s = decomposed().singularValues();
  return {s[rank - 1] / s[0], (qr_.colsPermutation() * decomposed().matrixV().col(rank - 1)).cwiseAbs2()};
}

std::vector<std::string> notes_of_parts(const Problem& problem) {
  const Problem::State& state = problem.state();
  std::vector<std::vector<int64_t>> parts = parts_of(state);
  if (parts.size() < 2) return {};
  const auto [least, most] =
      std::minmax_element(parts.begin(), parts.end(), [](auto& a, auto& b) { return a.size() < b.size(); });
  return {fmt::format("{} parts that no residual connects, of {} to {} blocks; the smallest: {}",
                      parts.size(), least->size(), most->size(), list_of(state, *least))};
}

std::vector<std::string> notes_of_rank(const Problem& problem, Run& run) {
  const Problem::State& state = problem.state();
  if (!run.forms_jacobian() || run.has_energies() || run.options().precision != Precision::f64) return {};
  std::vector<HostBatch> batches;
  run.evaluate([&] { batches = run.evaluator().host_batches(false); });
  int64_t rows = 0;
  std::vector<int> widths(size_t(run.evaluator().tangent_size()), 0);  // by first coordinate of a block
  for (const HostBatch& batch : batches) {
    rows += batch.rows * batch.instances;
    for (size_t k = 0; k < batch.columns.size(); ++k)
      if (batch.columns[k] >= 0) widths[size_t(batch.columns[k])] = batch.widths[k % batch.widths.size()];
  }
  const double n = double(std::accumulate(widths.begin(), widths.end(), int64_t(0)));
  if (double(std::max<int64_t>(rows, 1)) * n * n > kMostProducts || n * n * n > kMostProducts) return {};
  const NormalEquations equations(batches);
  run.evaluate([&] {
    if (!run.solves_on_host()) run.evaluator().linearize();
    batches = run.evaluator().host_batches();
  });
  std::vector<int64_t> kept, owner;  // unknowns that move, and their blocks
  for (int64_t b = 0; b < equations.pattern().blocks(); ++b) {
    const int64_t first = equations.columns()[size_t(b)];
    const auto set = std::find_if(state.sets.begin(), state.sets.end(), [&](const SetState& s) {
      return first >= s.first_tangent && first < s.first_tangent + s.count * s.tangent();
    });
    const int64_t block = set->first_block + (first - set->first_tangent) / set->tangent();
    for (int64_t k = 0; k < equations.pattern().width(b); ++k)
      if (state.moves(block, first + k)) {
        kept.push_back(equations.pattern().first[size_t(b)] + k);
        owner.push_back(block);
      }
  }
  if (kept.empty() || surely_full(equations, batches, kept)) return {};
  const Eigen::MatrixXd all = dense_jacobian(batches, equations, rows);
  if (!all.allFinite()) return {};
  const auto [share, directions] = ColumnDirections(all(Eigen::all, kept)).free();
  if (directions == 0) return {};
  std::vector<int64_t> blocks;
  for (size_t k = 0; k < kept.size(); ++k)
    if (share[Eigen::Index(k)] > kShare && (blocks.empty() || blocks.back() != owner[k]))
      blocks.push_back(owner[k]);
  size_t moving = 0;
  for (const auto& part : parts_of(state)) moving += part.size();
  const std::string whose = blocks.size() > 1 && blocks.size() == moving
                                ? "all blocks, which may move together (a gauge): fix() one"
                                : list_of(state, blocks);
  return {fmt::format("{} {} no residual to first order: {}", directions,
                      directions == 1 ? "direction changes" : "directions change", whose)};
}

}  // namespace lockstep::solve
