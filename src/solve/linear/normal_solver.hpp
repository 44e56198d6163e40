// Solvers by the Cholesky factor of the damped normal equations.
#pragma once

#include <span>
#include <vector>

#include "solve/linear/host_solver.hpp"
#include "solve/linear/normal_equations.hpp"

namespace lockstep::solve {

/// Pivots below this part of their diagonal element mean a singular matrix.
inline constexpr double kLeastPivot = 1e-16;

/// The Cholesky factor of a matrix (n, n; column-major) in place, by threads where that is requested. False where a pivot squared is not
/// above the part `least` of `whole`, the diagonal element that it came from.
bool dense_cholesky(std::vector<double>& matrix, std::span<const double> whole, double least, bool threads);

/// Assembles and damps; how to factorise and substitute is the derived class's.
class NormalSolver : public HostSolver {
 protected:
  void structured(std::span<const HostBatch> batches) override;
  void linearised(std::span<const HostBatch> batches) override;
  LinearResult step(double lambda, std::span<const double> gradient, std::span<double> step) override;

  /// After equations_ has another pattern.
  virtual void analyse() = 0;
  /// Factorises values_ + diag(added). False where the matrix is not positive definite.
  virtual bool factorise(std::span<const double> added) = 0;
  virtual void substitute(std::vector<double>& x) = 0;
  int64_t bytes() const override { return equations_.bytes() + 8 * int64_t(values_.size()); }

  NormalEquations equations_;
  std::vector<double> values_, diagonal_;
  std::vector<int32_t> groups_;  // of the order of elimination, by block; empty: automatic

 private:
  bool analysed_ = false;
};

}  // namespace lockstep::solve
