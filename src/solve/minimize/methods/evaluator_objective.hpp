// An evaluator as the minimisers over device vectors see it.
#pragma once

#include <algorithm>

#include "lockstep/optimize.hpp"
#include "solve/evaluate/evaluator_state.hpp"

namespace lockstep::solve {

/// Iterations between snapshots of these minimisers.
constexpr int kSnapshotInterval = 50;

/// The state is the point, the candidate the trial; steps are tangent vectors.
class EvaluatorObjective final : public optimize::Objective {
 public:
  explicit EvaluatorObjective(Evaluator& evaluator) : s_(evaluator.internals()) {}
  const Device& device() const override { return s_.device; }
  Buffer point() const override { return s_.x; }
  Buffer trial() const override { return s_.candidate; }
  Buffer gradient() const override { return s_.gradient; }
  Buffer value() const override { return s_.cost; }
  /// Host terms read the state.
  bool recordable() const override {
    return std::ranges::none_of(s_.batches, [](const BatchState& batch) { return batch.host != nullptr; });
  }
  /// Fixed blocks do not count.
  Buffer counted() const override { return s_.any_fixed ? s_.free_numbers : Buffer(); }
  void launch(const Buffer& step) override {
    s_.launch_retract(step);
    s_.launch_gradient(s_.candidate, false);
    s_.sum_cost();
  }
  void accepted() override { s_.jacobian_current = false; }

 private:
  Evaluator::State& s_;
};

}  // namespace lockstep::solve
