// Linearisations and steps of small problems: kernels compute the instances, loops on the host add them up.
#pragma once

#include <memory>
#include <vector>

#include "device/variants/variants.hpp"
#include "lockstep/device.hpp"
#include "solve/evaluate/evaluator.hpp"

namespace lockstep::solve {

const variants::Computation& sums_computation();

/// On a device whose memory is the host's, a small problem would spend most of its time on launches of sums. Here
/// each batch's instances are one recorded launch, and everything else is done in place, in the order of the
/// kernels: all numbers have the same bits.
class HostSums {
 public:
  /// For evaluators of direct solvers on the CPU: exact numerics, f64, no energies, no groups, few instances.
  static std::unique_ptr<HostSums> make(Evaluator::State& state);

  /// As Evaluator's.
  double linearize();
  double try_step(const Buffer& step);
  void multiply(const Buffer& p, const Buffer& q) const;
  double state_norm() const;

 private:
  explicit HostSums(Evaluator::State& state) : state_(state) {}
  double sum_costs() const;

  Evaluator::State& state_;
  std::vector<Graph> linearize_;  // by batch: their derivatives share scratch memory
  Graph try_;
  uint64_t step_ = 0;  // address of the step that try_ reads
};

}  // namespace lockstep::solve
