// Direct solvers on the host and what they share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "solve/linear/linear_solver.hpp"

namespace lockstep::solve {

/// A direct solver.
class HostSolver : public LinearSolver {
 public:
  void hold(std::vector<uint8_t> held) final { held_ = std::move(held); }

  /// The damping's memory of earlier linearisations, for a snapshot.
  virtual std::vector<double> memory() const { return {}; }
  virtual void remember(std::vector<double>) {}

  void prepare(Evaluator& evaluator) final;
  LinearResult solve(Evaluator& evaluator, double lambda, double forcing, const Buffer& step) final;

 protected:
  /// The structure of the batches is new, before linearised().
  virtual void structured(std::span<const HostBatch> batches) = 0;
  /// The numbers of the batches are new; columns that are held are 0 in them.
  virtual void linearised(std::span<const HostBatch> batches) = 0;
  /// step = -(J^T J + lambda D)^-1 gradient over the tangent coordinates.
  virtual LinearResult step(double lambda, std::span<const double> gradient, std::span<double> step) = 0;
  bool is_held(int64_t coordinate) const { return !held_.empty() && held_[size_t(coordinate)]; }

 private:
  uint64_t structure_ = 0;  // State::id of the evaluator
  std::vector<uint8_t> held_;
  std::vector<double> gradient_;
};

/// make_host_solver() for callers that hold coordinates; also dense_schur.
std::unique_ptr<HostSolver> make_holding_solver(Linear kind);
/// Eliminates blocks that share no term and factorises the Schur complement of the others as a dense matrix.
/// Throws InputError at the first prepare() where that matrix is too large.
std::unique_ptr<HostSolver> make_dense_schur_solver();

/// A buffer of f32 or f64 as f64, and back.
std::vector<double> to_host(const Device& device, const Buffer& buffer);
void to_device(const Device& device, std::span<const double> values, const Buffer& buffer);

}  // namespace lockstep::solve
