// Sparse Cholesky factorisation on a device, by fronts: the levels of the elimination tree one after the other, all
// fronts of a level at once. The same bits on every device in exact numerics.
#pragma once

#include <cstdint>

#include "lockstep/device.hpp"
#include "solve/linear/fronts/front_kernels.hpp"
#include "solve/linear/fronts/front_plan.hpp"

namespace lockstep::solve {

class FrontCholesky {
 public:
  /// Orders, analyses and allocates; `real` is f32 or f64. Throws InputError where the device has not the memory.
  /// `groups` as of FrontTree.
  FrontCholesky(const Device& device, Storage real, const BlockPattern& pattern,
                std::span<const int32_t> groups = {});

  /// By the entries of the pattern, and by unknown: to be filled before run().
  const Buffer& values() const { return values_; }
  const Buffer& added() const { return added_; }
  const Buffer& x() const { return x_; }
  /// Factorises the matrix of values() plus diag(added()); x() = its inverse times x(). Launches only.
  void run();

  struct Outcome {
    /// Least pivot over the diagonal element it came from.
    double least_pivot = 1;
    /// The first unknown of the order whose pivot is not a positive finite number, and its front and column; -1: none.
    int64_t unknown = -1, front = -1, column = -1;
    bool ok() const { return unknown < 0; }
  };
  /// Outcome of the last run; waits for it.
  Outcome outcome() const;

  int64_t levels() const { return int64_t(plan_.levels.size()); }
  double bytes() const { return plan_.bytes(size_of(real_)); }

 private:
  void upload();
  void launch(FrontStep step, const WorkRange& range, auto&&... arguments) const;
  void factorise() const;
  void substitute() const;

  Device device_;
  Storage real_;
  FrontPlan plan_;
  Buffer work_, fronts_, children_, places_, rows_, value_at_, diagonal_at_, order_;
  Buffer panels_, updates_, diagonals_, inverses_, pivots_, whole_, sent_, y_, least_;
  Buffer values_, added_, x_;
  Graph graph_;
  bool recorded_ = false;
};

}  // namespace lockstep::solve
