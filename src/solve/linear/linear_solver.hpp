// Solvers of the damped normal equations (J^T J + D) s = -g.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "solve/evaluate/evaluator.hpp"

namespace lockstep::solve {

struct LinearResult {
  bool ok = true;  // false: the matrix is not positive definite, or a number is not finite
  int iterations = 0;
  std::string message;
};

/// The damping's D = clamp(diag J^T J, low, high): the diagonal itself, or the identity where both are 1. The default
/// limits only keep columns of zeros from a division by zero: D has the units of the diagonal.
struct DampingRange {
  double low = 1e-200, high = 1e200;
  double operator()(double diagonal) const { return std::clamp(diagonal, low, high); }
  /// The same for f32 arithmetic.
  DampingRange narrow() const { return {std::max(low, 1e-30), std::min(high, 1e36)}; }
};

class LinearSolver {
 public:
  virtual ~LinearSolver() = default;
  /// Before a prepare().
  void set_damping(const DampingRange& range) { damping_ = range; }
  /// The order of elimination: by tangent coordinate, the group of its block. Before the first prepare(); empty: automatic.
  void set_order(std::vector<int32_t> order) { order_ = std::move(order); }
  /// Tangent coordinates that stay: their step is 0, as if their blocks were fixed. 1 for held; empty for
  /// none. For the prepare() that follows; a solver that was once given some is given them each time.
  virtual void hold(std::vector<uint8_t> held) = 0;
  /// Compiles on other threads what the first solve() will launch.
  virtual void compile_ahead(const Evaluator&) const {}
  /// The evaluator was relinearised at its state. What depends on its structure alone stays for as long as its
  /// State::id does.
  virtual void prepare(Evaluator& evaluator) = 0;
  /// step (tangent, on the evaluator's device) = -(J^T J + lambda D)^-1 g; an
  /// iterative solver stops where the residual's norm falls below `forcing` |g|. lambda = 0 is Gauss-Newton.
  /// May be called several times after one prepare(), with other lambdas. Dense QR damps by the largest
  /// diagonal so far.
  virtual LinearResult solve(Evaluator& evaluator, double lambda, double forcing, const Buffer& step) = 0;
  /// Memory of factors and tables, nearly.
  virtual int64_t bytes() const { return 0; }

 protected:
  DampingRange damping_;
  std::vector<int32_t> order_;
};

/// Direct solvers on the host (Eigen): dense_cholesky, dense_qr, cholesky (sparse).
std::unique_ptr<LinearSolver> make_host_solver(Linear kind);
/// Conjugate gradients on the device, preconditioned by the inverse diagonal blocks.
std::unique_ptr<LinearSolver> make_pcg_solver(int max_iterations);
/// Sparse Cholesky factorisation on the device. Throws InputError at the first prepare() where its memory does not
/// suffice.
std::unique_ptr<LinearSolver> make_device_cholesky();
/// Implicit Schur complement: eliminates the block set that no term has in two slots and that has most
/// blocks; conjugate gradients on the rest with the Schur complement's diagonal blocks. Throws InputError
/// where no set can be eliminated.
std::unique_ptr<LinearSolver> make_schur_solver(int max_iterations);

}  // namespace lockstep::solve
