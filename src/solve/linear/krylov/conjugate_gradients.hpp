// Conjugate gradients that run on the device in recorded blocks of iterations. Whether an iteration still
// counts is decided there, so the number of iterations depends on the data alone.
#pragma once

#include <functional>
#include <vector>

#include "solve/linear/krylov/block_inverse.hpp"
#include "solve/linear/linear_solver.hpp"

namespace lockstep::solve {

/// Solves A x = b for a symmetric positive definite A, preconditioned by the inverse blocks of `parts`.
class ConjugateGradients {
 public:
  /// q = A p; launches only. `parameters[0]` is what solve() was given as `lambda`.
  using Product = std::function<void(const Buffer& p, const Buffer& q)>;
  /// `size`: elements of the vectors, which the parts cover.
  /// Products in which the host takes part, by functions or sums over ranks, are computed again each time, others
  /// recorded.
  ConjugateGradients(const Device& device, Storage real, int64_t size, std::vector<BlockPart> parts,
                     Product product, bool by_host);

  /// The kernels of solve() and add_damping(), to be traced when they are called.
  static std::vector<std::function<Kernel()>> kernels(Storage real);

  const Buffer& parameters() const { return parameters_; }
  const std::vector<BlockPart>& parts() const { return parts_; }
  /// Sets lambda and the damping's range on the device, for what is launched before solve().
  void set_parameters(double lambda, double forcing, int max_iterations, const DampingRange& damping);
  /// q += lambda clamp(diagonal, low, high) p, with the numbers that set_parameters() gave: for a Product.
  void add_damping(const Buffer& diagonal, const Buffer& p, const Buffer& q) const;
  /// x = A^-1 b, from x = 0, until |A x - b| <= forcing |b|. b is overwritten by the residual.
  LinearResult solve(const Buffer& b, const Buffer& x);

 private:
  static constexpr int kIterations = 8;  // of a recorded block
  void control(int kernel);
  void iterate();

  Device device_;
  Storage real_;
  int64_t size_ = 0;
  std::vector<BlockPart> parts_;
  std::vector<int64_t> first_group_;
  Product product_;
  Buffer parameters_;  // lambda, forcing^2, most iterations, the damping's range
  Buffer scalars_;     // r z, threshold, alpha, beta
  Buffer flags_;       // i32: done, iterations, failed
  Buffer r_, x_, z_, p_, q_, pq_, rz_, rr_;
  Graph graph_;
  bool by_host_, recorded_ = false;
};

}  // namespace lockstep::solve
