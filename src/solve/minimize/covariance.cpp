#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "lockstep/solve.hpp"
#include "solve/linear/normal_equations.hpp"
#include "solve/linear/sparse_cholesky.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

constexpr double kDenseNumbers = 4e6;  // of a Jacobian that QR factorises
constexpr double kLeastPivot = 1e-14;  // of the scaled matrix

[[noreturn]] void singular(const std::string& detail) {
  throw InputError("J^T J is singular: " + detail, "solve covariance",
                   "residuals that determine all variables; fix() those that may move freely");
}

/// Columns of (J^T J)^-1 by the triangular factor of J, whose condition is the root of that of J^T J.
Eigen::MatrixXd inverse_by_qr(std::span<const HostBatch> batches, const NormalEquations& equations,
                              int64_t rows) {
  const int64_t n = equations.unknowns();
  Eigen::MatrixXd j = Eigen::MatrixXd::Zero(rows, n);
  int64_t row = 0;
  for (const HostBatch& batch : batches) {
    const double* from = batch.jacobian.data();
    const size_t slots = batch.widths.size();
    for (int64_t i = 0; i < batch.instances; ++i)
      for (int k = 0; k < batch.rows; ++k, ++row)
        for (size_t s = 0; s < slots; from += batch.widths[s], ++s) {
          const int64_t column = batch.columns[size_t(i) * slots + s];
          if (column < 0) continue;
          const int64_t first = equations.pattern().first[size_t(equations.block_at(column))];
          for (int c = 0; c < batch.widths[s]; ++c) j(row, first + c) += from[c];
        }
  }
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

}  // namespace

std::vector<double> covariance(const Problem& problem, Context& context,
                               std::span<const std::pair<BlockSet, int64_t>> blocks) {
  const Problem::State& state = problem.state();
  std::vector<int64_t> wanted;  // tangent coordinates
  for (const auto& [set, block] : blocks) {
    if (set.id < 0 || set.id >= int(state.sets.size()))
      throw InputError(fmt::format("block set {}", set.id), "solve covariance", "a set of the problem");
    const SetState& s = state.sets[size_t(set.id)];
    if (block < 0 || block >= s.count)
      throw InputError(fmt::format("block {} of {}", block, s.name), "solve covariance",
                       fmt::format("0 to {}", s.count - 1));
    if (state.fixed[size_t(s.first_block + block)])
      throw InputError(fmt::format("block {} of {} is fixed", block, s.name), "solve covariance",
                       "blocks that move");
    for (int k = 0; k < s.tangent(); ++k) wanted.push_back(s.first_tangent + block * s.tangent() + k);
  }
  std::vector<HostBatch> batches;
  context.run_stage("solve.evaluate", [&](const Device& device) {
    Evaluator evaluator(problem, device, Precision::f64);
    evaluator.linearize();
    batches = evaluator.host_batches();
  });
  const NormalEquations equations(batches);
  int64_t rows = 0;
  bool energies = false;
  for (const HostBatch& batch : batches) rows += batch.rows * batch.instances, energies |= batch.energy;
  // The unknown of each coordinate, by way of its block.
  std::vector<int64_t> unknown;
  for (const int64_t coordinate : wanted) {
    const auto after = std::upper_bound(equations.columns().begin(), equations.columns().end(), coordinate);
    const int64_t block = after - equations.columns().begin() - 1;
    if (block < 0 || coordinate - equations.columns()[size_t(block)] >= equations.pattern().width(block))
      singular("a variable without residuals");
    unknown.push_back(equations.pattern().first[size_t(block)] + coordinate -
                      equations.columns()[size_t(block)]);
  }
  const size_t n = unknown.size();
  std::vector<double> out(n * n);
  if (!energies && rows >= equations.unknowns() &&
      double(rows) * double(equations.unknowns()) <= kDenseNumbers) {
    const Eigen::MatrixXd inverse = inverse_by_qr(batches, equations, rows);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) out[i * n + j] = inverse(unknown[i], unknown[j]);
    return out;
  }
  std::vector<double> values;
  equations.assemble(batches, values);
  const std::vector<double> diagonal = equations.diagonal(values);
  for (const double d : diagonal)
    if (!(d > 0) || !std::isfinite(d)) singular("a variable that no residual depends on here");
  SparseCholesky cholesky(equations.pattern());
  const std::vector<double> none(diagonal.size(), 0);
  if (!cholesky.factorise(values, none) || cholesky.least_pivot() < kLeastPivot)
    singular("a pivot that is zero but for rounding");
  std::vector<double> x(diagonal.size());
  for (size_t j = 0; j < n; ++j) {
    std::fill(x.begin(), x.end(), 0.0);
    x[size_t(unknown[j])] = 1;
    cholesky.solve(x);
    for (size_t i = 0; i < n; ++i) out[i * n + j] = x[size_t(unknown[i])];
  }
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j) out[i * n + j] = out[j * n + i] = 0.5 * (out[i * n + j] + out[j * n + i]);
  return out;
}

}  // namespace lockstep::solve
