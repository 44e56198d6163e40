// Kernels of the online ensemble's classic head: what it predicts, how wrong that was, and the gradients by states and head.
#pragma once

#include "lockstep/forecast/observe.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::forecast {

/// Columns of a member's row of `found`.
inline constexpr int kPrediction = 0, kSlope = 1, kTop = 2, kSum = 3, kStateActivation = 4, kFoundCount = 5;
inline constexpr int kDivergence = kSlope;  // of two-hot heads with a posterior

template <class T>
struct ObserveKernels {
  /// Over M groups of 32 lanes: of h (M, D) and head (D + S) the prediction P, the objective's derivative by the
  /// activation, and the softmax's maximum, sum and share of the activation. Sums in 32 chains and a tree over them.
  Kernel error;
  Kernel states;  // over (M, D): the objective's derivative by h
  Kernel head;    // over (D + S): by the head, members in their order
};
template <class T>
const ObserveKernels<T>& observe_kernels(Objective objective);

}  // namespace lockstep::forecast
