#include "solve/linear/host_solver.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <utility>

#include "solve/evaluate/evaluator_state.hpp"
#include "solve/linear/cholesky/dense_kernels.hpp"
#include "solve/linear/cholesky/sparse_cholesky.hpp"
#include "solve/linear/normal_solver.hpp"

namespace lockstep::solve {
namespace {

constexpr double kLargestDense = 2.5e8;  // numbers of a dense matrix: 2 GB

[[noreturn]] void refuse_size(const char* what, int64_t rows, int64_t columns) {
  throw InputError(fmt::format("{} of {} x {}", what, rows, columns), "solve.linear",
                   "a sparse solver for a problem of this size");
}

/// Columns of held coordinates become 0; of a Hessian also the rows.
void clear_held(HostBatch& batch, const std::vector<uint8_t>& held) {
  const size_t slots = batch.widths.size();
  int stride = 0;
  for (const int width : batch.widths) stride += width;
  for (int64_t n = 0; n < batch.instances; ++n) {
    int at = 0;
    for (size_t s = 0; s < slots; at += batch.widths[s], ++s) {
      const int64_t column = batch.columns[size_t(n) * slots + s];
      if (column < 0) continue;
      for (int i = 0; i < batch.widths[s]; ++i) {
        if (!held[size_t(column + i)]) continue;
        double* const matrix = batch.jacobian.data() + n * batch.rows * stride;
        for (int r = 0; r < batch.rows; ++r) matrix[r * stride + at + i] = 0;
        if (batch.energy)
          for (int c = 0; c < stride; ++c) matrix[(at + i) * stride + c] = 0;
      }
    }
  }
}

bool finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

class SparseSolver final : public NormalSolver {
  void analyse() override { cholesky_ = std::make_unique<SparseCholesky>(equations_.pattern(), groups_); }
  bool factorise(std::span<const double> added) override {
    return cholesky_->factorise(values_, added) && cholesky_->least_pivot() > kLeastPivot;
  }
  void substitute(std::vector<double>& x) override { cholesky_->solve(x); }
  int64_t bytes() const override {
    return NormalSolver::bytes() + (cholesky_ ? 8 * cholesky_->factor_elements() : 0);
  }

  std::unique_ptr<SparseCholesky> cholesky_;
};

class DenseSolver final : public NormalSolver {
  void analyse() override {
    const int64_t n = equations_.unknowns();
    if (double(n) * double(n) > kLargestDense) refuse_size("dense matrix", n, n);
  }
  bool factorise(std::span<const double> added) override {
    const BlockPattern& pattern = equations_.pattern();
    const int64_t n = pattern.unknowns();
    matrix_.assign(size_t(n * n), 0);
    const double* from = values_.data();
    for (size_t e = 0; e < pattern.rows.size(); ++e) {
      const int64_t row = pattern.first[size_t(pattern.rows[e])],
                    column = pattern.first[size_t(pattern.columns[e])];
      const int64_t height = pattern.width(pattern.rows[e]), width = pattern.width(pattern.columns[e]);
      for (int64_t j = 0; j < width; ++j)
        for (int64_t i = 0; i < height; ++i) matrix_[size_t((column + j) * n + row + i)] = *from++;
    }
    std::vector<double> whole(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) whole[size_t(k)] = matrix_[size_t(k * n + k)] += added[size_t(k)];
    return dense_cholesky(matrix_, whole, kLeastPivot, true);
  }
  void substitute(std::vector<double>& x) override {
    const int64_t n = equations_.unknowns();
    forward_substitute(matrix_.data(), n, n, x.data());
    backward_substitute(matrix_.data(), n, n, x.data());
  }
  int64_t bytes() const override { return NormalSolver::bytes() + 8 * int64_t(matrix_.size()); }

  std::vector<double> matrix_;
};

/// J with its columns scaled is reduced to R once; each damping then factorises [R; sqrt(l) I]. The scale is
/// the largest length that the column had so far (Moré 1978): a number that the residuals lose sight of for a
/// while does not move without restraint then. Where J is large, the Cholesky factor of J^T J + l I serves, at
/// half the operations, as long as its pivots say that the squared condition costs no digits that matter.
class QrSolver final : public HostSolver {
  static constexpr double kLargeOperations = 1e5;  // rows times squared columns
  static constexpr double kLeastNormalPivot = 1e-6;

  void structured(std::span<const HostBatch> batches) override { equations_ = NormalEquations(batches); }
  void linearised(std::span<const HostBatch> batches) override {
    take(batches);
    const int64_t n = jacobian_.cols(), m = jacobian_.rows();
    largest_.resize(size_t(n), 0);
    scale_.resize(n);
    for (int64_t k = 0; k < n; ++k) {
      largest_[size_t(k)] = std::max(largest_[size_t(k)], damping_(jacobian_.col(k).squaredNorm()));
      scale_[k] = std::sqrt(largest_[size_t(k)]);
      jacobian_.col(k) /= scale_[k];
    }
    finite_ = jacobian_.allFinite() && right_.allFinite();
    reduced_ = m <= n;
    normal_.clear();
    if (!finite_ || reduced_ || double(m) * double(n * n) < kLargeOperations) return;
    normal_.resize(size_t(n * n));
    gram(jacobian_.data(), m, n, normal_.data());
    gradient_.resize(n);
    for (int64_t k = 0; k < n; ++k) gradient_[k] = jacobian_.col(k).dot(right_);
  }
  /// J and r of all instances.
  void take(std::span<const HostBatch> batches) {
    const int64_t n = equations_.unknowns();
    int64_t m = 0;
    for (const HostBatch& batch : batches) {
      if (batch.energy)
        throw InputError("energy terms", "solve.linear", "residual terms, or another solver than dense QR");
      m += batch.rows * batch.instances;
    }
    if (double(m) * double(n) > kLargestDense) refuse_size("dense Jacobian", m, n);
    jacobian_ = dense_jacobian(batches, equations_, m);
    right_.resize(m);
    double* to = right_.data();
    for (const HostBatch& batch : batches)
      to = std::copy_n(batch.residuals.data(), batch.rows * batch.instances, to);
  }
  void reduce() {
    if (std::exchange(reduced_, true)) return;
    const int64_t n = jacobian_.cols();
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr(jacobian_);
    right_.applyOnTheLeft(qr.householderQ().adjoint());
    right_.conservativeResize(n);
    jacobian_ = Eigen::MatrixXd(qr.matrixQR().topRows(n).triangularView<Eigen::Upper>());
  }
  /// By unknown, whether its coordinate is held.
  std::vector<uint8_t> held_unknowns() const {
    std::vector<uint8_t> out;
    for (int64_t block = 0; block < equations_.pattern().blocks(); ++block)
      for (int64_t i = 0; i < equations_.pattern().width(block); ++i)
        out.push_back(is_held(equations_.columns()[size_t(block)] + i));
    return out;
  }
  /// The scaled step by the factor of J^T J + lambda I. False where a pivot is too small.
  bool step_by_normal(double lambda, const std::vector<uint8_t>& held, Eigen::VectorXd& x) {
    const int64_t n = scale_.size();
    if (normal_.empty()) return false;
    factor_ = normal_;
    std::vector<double> whole(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) {
      factor_[size_t(k * n + k)] += held[size_t(k)] ? 1 : lambda;
      whole[size_t(k)] = normal_[size_t(k * n + k)] + lambda;
    }
    if (!dense_cholesky(factor_, whole, kLeastNormalPivot, false)) return false;
    x = -gradient_;
    forward_substitute(factor_.data(), n, n, x.data());
    backward_substitute(factor_.data(), n, n, x.data());
    return true;
  }
  LinearResult step(double lambda, std::span<const double>, std::span<double> step) override {
    if (!finite_) return {false, 0, "the residuals or the Jacobian are not finite"};
    const std::vector<uint8_t> held = held_unknowns();
    const int64_t n = scale_.size();
    Eigen::VectorXd x;
    if (!step_by_normal(lambda, held, x)) {
      reduce();
      const int64_t m = jacobian_.rows();
      Eigen::MatrixXd a = Eigen::MatrixXd::Zero(m + n, n);
      a.topRows(m) = jacobian_;
      Eigen::VectorXd b = Eigen::VectorXd::Zero(m + n);
      b.head(m) = -right_;
      for (int64_t k = 0; k < n; ++k) a(m + k, k) = held[size_t(k)] ? 1 : std::sqrt(lambda);
      if (lambda > 0) {
        x = a.householderQr().solve(b);
      } else {
        const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(a);
        if (qr.rank() < n) return {false, 0, fmt::format("the Jacobian has rank {} of {}", qr.rank(), n)};
        x = qr.solve(b);
      }
    }
    x = x.cwiseQuotient(scale_);
    if (!x.allFinite()) return {false, 0, "the step is not finite"};
    equations_.scatter(std::span<const double>(x.data(), size_t(n)), step);
    return {true, 1, ""};
  }
  std::vector<double> memory() const override { return largest_; }
  void remember(std::vector<double> memory) override { largest_ = std::move(memory); }
  int64_t bytes() const override {
    return equations_.bytes() + 8 * int64_t(jacobian_.size() + 2 * int64_t(normal_.size()));
  }

  NormalEquations equations_;
  Eigen::MatrixXd jacobian_;             // scaled; R once it is reduced
  Eigen::VectorXd right_;                // the residuals; Q^T r then
  Eigen::VectorXd scale_, gradient_;     // J^T r, scaled
  std::vector<double> normal_, factor_;  // J^T J where J is large
  std::vector<double> largest_;          // squared length of each column
  bool finite_ = false, reduced_ = false;
};

}  // namespace

bool dense_cholesky(std::vector<double>& matrix, std::span<const double> whole, double least, bool threads) {
  const auto n = int64_t(whole.size());
  if (partial_cholesky(matrix.data(), n, n, threads) < n) return false;
  for (int64_t k = 0; k < n; ++k) {
    const double pivot = matrix[size_t(k * n + k)];
    if (!(pivot * pivot > least * whole[size_t(k)])) return false;
  }
  return true;
}

void NormalSolver::structured(std::span<const HostBatch> batches) {
  NormalEquations equations(batches);
  std::vector<int32_t> groups = equations.of_blocks(order_);
  analysed_ = analysed_ && equations.pattern() == equations_.pattern() && groups == groups_;
  equations_ = std::move(equations), groups_ = std::move(groups);
  if (!analysed_) analyse();
  analysed_ = true;
}

void NormalSolver::linearised(std::span<const HostBatch> batches) {
  equations_.assemble(batches, values_);
  diagonal_ = equations_.diagonal(values_);
}
LinearResult NormalSolver::step(double lambda, std::span<const double> gradient, std::span<double> step) {
  std::vector<double> added(diagonal_.size());
  std::vector<double> x = equations_.gather(gradient);
  size_t k = 0;
  for (int64_t b = 0; b < equations_.pattern().blocks(); ++b)
    for (int64_t i = 0; i < equations_.pattern().width(b); ++i, ++k) {
      added[k] = lambda * damping_(diagonal_[k]);
      x[k] = -x[k];
      if (is_held(equations_.columns()[size_t(b)] + i)) added[k] = 1, x[k] = 0;
    }
  if (!finite(x) || !finite(diagonal_)) return {false, 0, "the gradient or J^T J is not finite"};
  if (!factorise(added)) return {false, 0, "J^T J is not positive definite"};
  substitute(x);
  if (!finite(x)) return {false, 0, "the step is not finite"};
  equations_.scatter(x, step);
  return {true, 1, ""};
}

std::vector<double> to_host(const Device& device, const Buffer& buffer) {
  if (buffer.storage() == Storage::f64) return device.download<double>(buffer);
  const std::vector<float> values = device.download<float>(buffer);
  return {values.begin(), values.end()};
}
void to_device(const Device& device, std::span<const double> values, const Buffer& buffer) {
  if (buffer.storage() == Storage::f64) {
    device.write(buffer, values.data(), int64_t(values.size_bytes()));
    return;
  }
  const std::vector<float> narrow(values.begin(), values.end());
  device.write(buffer, narrow.data(), int64_t(narrow.size() * sizeof(float)));
}

void HostSolver::prepare(Evaluator& evaluator) {
  std::vector<HostBatch> batches = evaluator.host_batches();
  gradient_ = to_host(evaluator.device(), evaluator.gradient());
  if (!held_.empty()) {
    for (HostBatch& batch : batches) clear_held(batch, held_);
    for (size_t k = 0; k < gradient_.size(); ++k)
      if (held_[k]) gradient_[k] = 0;
  }
  if (const uint64_t id = evaluator.internals().id; structure_ != id) {
    structured(batches);
    structure_ = id;
  }
  linearised(batches);
}

LinearResult HostSolver::solve(Evaluator& evaluator, double lambda, double, const Buffer& out) {
  std::vector<double> values(gradient_.size(), 0);
  const LinearResult result = step(lambda, gradient_, values);
  if (result.ok) to_device(evaluator.device(), values, out);
  return result;
}

std::unique_ptr<HostSolver> make_holding_solver(Linear kind) {
  switch (kind) {
    case Linear::dense_cholesky: return std::make_unique<DenseSolver>();
    case Linear::dense_qr: return std::make_unique<QrSolver>();
    case Linear::cholesky: return std::make_unique<SparseSolver>();
    case Linear::dense_schur: return make_dense_schur_solver();
    default: throw InternalError("linear solver", "make_host_solver", "a direct one");
  }
}
std::unique_ptr<LinearSolver> make_host_solver(Linear kind) { return make_holding_solver(kind); }

}  // namespace lockstep::solve
