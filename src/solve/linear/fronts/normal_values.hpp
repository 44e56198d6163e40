// J^T J on the device of an evaluator, from the Jacobians it keeps there, laid out as NormalEquations says.
#pragma once

#include <functional>
#include <vector>

#include "solve/evaluate/evaluator_state.hpp"
#include "solve/linear/linear_solver.hpp"
#include "solve/linear/normal_equations.hpp"

namespace lockstep::solve {

class NormalValues {
 public:
  NormalValues() = default;
  NormalValues(Evaluator& evaluator, const NormalEquations& equations);

  /// The kernels of what follows, to be traced when they are called.
  static std::vector<std::function<Kernel()>> kernels(Storage real);

  /// values = J^T J (and Hessians of energies) at the evaluator's state; rows and columns of held unknowns are 0.
  void assemble(Evaluator& evaluator, const Buffer& values) const;
  /// added = lambda D, 1 for held unknowns; x = -gradient, 0 for these.
  void damp(double lambda, const DampingRange& range, const Buffer& values, const Buffer& gradient,
            const Buffer& added, const Buffer& x) const;
  /// The tangent vector of unknowns; 0 elsewhere.
  void scatter(const Buffer& x, const Buffer& step) const;
  /// By tangent coordinate; empty for none.
  void hold(const std::vector<uint8_t>& held);

 private:
  struct Expansion {
    Buffer stored, factors;  // by entry of an instance's J
    int64_t first = 0, instances = 0, entries = 0;
  };
  void list_sources(const std::vector<HostBatch>& batches, const NormalEquations& equations);
  void list_unknowns(const NormalEquations& equations);

  Device device_;
  Storage real_ = Storage::f64;
  int64_t unknowns_ = 0, numbers_ = 0;
  std::vector<Expansion> expansions_;
  std::vector<int32_t> tangents_;
  Buffer dense_;  // J of all instances, (rows, columns) each
  Buffer entry_of_, entries_, sources_, tangent_, diagonal_, held_;
};

}  // namespace lockstep::solve
