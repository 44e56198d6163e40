// Cost, gradient, Jacobian and their products of a problem on one device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// Jacobian and residuals of one batch on the host, corrected by the robust loss. Energy terms have
/// their positive semidefinite Hessian in `hessian` and gradient in `residuals` instead.
struct HostBatch {
  int rows = 0;             // residuals of an instance
  std::vector<int> widths;  // tangent sizes of its slots
  int64_t instances = 0;
  std::vector<int64_t> columns;   // (instances, slots): first tangent coordinate, -1 for a fixed block
  std::vector<double> jacobian;   // (instances, rows, sum of widths)
  std::vector<double> residuals;  // (instances, rows)
  bool energy = false;            // then rows == sum of widths, jacobian = Hessian, residuals = gradient
};

struct PartLayout;

/// Requests that an evaluator expects, so that their kernels are compiled ahead. Others are compiled when they
/// are first launched.
enum Use : unsigned {
  kUseLinearize = 1,  // linearize(), try_step()
  kUseGradient = 2,   // value_and_gradient(), try_gradient()
  kUseProduct = 4,    // multiply()
  kUseHost = 8,       // host_batches()
  kUseDiagonal = 16,  // diagonal(); without any use, or without kUseLinearize, it is there as well
};

struct EvaluatorOptions {
  int64_t batch_size = 0;  // instances that are evaluated at once; 0: all of a term
  unsigned uses = 0;
  /// Variants of `solve.assembly` (plain, groups) and `solve.sums` (device, host); empty: the fastest.
  std::string_view assembly{}, sums{};
  const PartLayout* parts = nullptr;  // of a problem in parts, which outlives the evaluator
};

/// All tangent vectors have tangent_size() elements: the blocks' tangent coordinates in the order of their
/// sets; coordinates of fixed blocks are there and stay 0. Buffers are of real() storage on device().
/// The state is uploaded once and stays on the device.
class Evaluator {
 public:
  Evaluator(const Problem& problem, const Device& device, Precision precision,
            const EvaluatorOptions& options = {});
  ~Evaluator();

  /// Takes over the problem as it is now, not in parts, with the bits of an evaluator built again. Tables of terms whose
  /// instances are the same stay; so does everything else where only values, data, weights and bounds differ.
  /// An evaluator whose update threw is of no use.
  void update(const Problem& problem);
  /// Ends the threads that compile ahead, until the next update().
  void rest();
  /// Memory on device and host, nearly.
  int64_t bytes() const;

  const Device& device() const;
  Storage real() const;  // f32 or f64: derivatives, tangent vectors
  int64_t ambient_size() const;
  int64_t tangent_size() const;
  int64_t batch_count() const;

  /// Called before functions of host terms are evaluated at a point that differs from the last one, and again before their
  /// derivatives are; empty: nothing is. rest() forgets it.
  using Prepare = std::function<void(std::span<const double> ambient, bool derivatives)>;
  void set_prepare(Prepare prepare);

  void set_state(std::span<const double> ambient);
  std::vector<double> state() const;

  /// Cost at the state (waits for one number).
  double cost();
  /// Cost, gradient, Jacobian and diagonal at the state, kept on the device. Gives the cost.
  double linearize();
  /// Cost and gradient only.
  double value_and_gradient();
  /// The launches of value_and_gradient() without waiting; may be recorded into a Graph.
  void launch_value_and_gradient();
  const Buffer& gradient() const;  // (tangent)
  const Buffer& diagonal() const;  // diag(J^T J), (tangent); after linearize(), where the uses have it
  /// q = J^T J p (Hessian of energy terms included); launches only.
  void multiply(const Buffer& p, const Buffer& q) const;
  /// Cost at state [+] step; the candidate is kept for accept().
  double try_step(const Buffer& step);
  /// The same with the gradient there, which gradient() then holds.
  double try_gradient(const Buffer& step);
  /// Cost at another candidate, and the candidate.
  double try_state(std::span<const double> ambient);
  std::vector<double> candidate() const;
  void accept();
  /// Norm of the state (ambient numbers of blocks that are not fixed).
  double state_norm() const;

  std::vector<BatchReport> batch_reports() const;
  int64_t scratch_bytes() const;
  /// Waits for the kernels that are compiled ahead.
  void wait_for_kernels();

  /// Copies of the linearised batches in f64, for direct solvers; without `numbers`, their structure alone.
  std::vector<HostBatch> host_batches(bool numbers = true) const;

  struct State;
  State& internals() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::solve
