// Solvers of the damped normal equations (J^T J + D) s = -g.
#pragma once

#include <memory>
#include <string>

#include "solve/evaluator.hpp"

namespace lockstep::solve {

struct LinearResult {
  bool ok = true;  // false: the matrix is not positive definite, or a number is not finite
  int iterations = 0;
  std::string message;
};

class LinearSolver {
 public:
  virtual ~LinearSolver() = default;
  /// The evaluator was linearised anew at its state.
  virtual void prepare(Evaluator& evaluator) = 0;
  /// step (tangent, on the evaluator's device) = -(J^T J + lambda clamp(diag J^T J, 1e-6, 1e32))^-1 g; an
  /// iterative solver stops where the residual's norm falls below `forcing` |g|. lambda = 0 is Gauss-Newton.
  /// May be called several times after one prepare(), with other lambdas. Dense QR damps by the largest
  /// diagonal so far.
  virtual LinearResult solve(Evaluator& evaluator, double lambda, double forcing, const Buffer& step) = 0;
};

/// Direct solvers on the host (Eigen): dense_cholesky, dense_qr, cholesky (sparse).
std::unique_ptr<LinearSolver> make_host_solver(Linear kind);
/// Conjugate gradients on the device, preconditioned by the inverse diagonal blocks.
std::unique_ptr<LinearSolver> make_pcg_solver(int max_iterations);
/// Implicit Schur complement: eliminates the block set that no term has in two slots and that has most
/// blocks; conjugate gradients on the rest with the Schur complement's diagonal blocks. Throws InputError
/// where no set can be eliminated.
std::unique_ptr<LinearSolver> make_schur_solver(int max_iterations);

}  // namespace lockstep::solve
