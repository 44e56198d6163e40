// Weights in the order of kernels.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/forecast/rollout.hpp"

namespace lockstep::forecast {

/// Sizes of everything on the device, from which memory is predicted and allocated.
struct RolloutLayout {
  int64_t members = 0, batch = 0, hidden = 0, inputs = 0, states = 0, steps = 0;
  int64_t p = 0;        // rows side by side
  int64_t blocks = 0;   // of p rows, a member
  int64_t rows = 0;     // of `work`: at least blocks p, a multiple of 32
  int64_t columns = 0;  // hidden rounded up to 32
  int64_t head = 0;     // elements of the head
  bool chained = true;  // columns of U in the order of chain_place, else in their own
  int64_t bias_rows = 4;
  WeightType weights = WeightType::f32;  // of U
  int64_t values = 3;                    // of a step: loss, norm, entropy, and of two-hot heads the variance
  int64_t groups() const { return members * batch; }
};

/// Elements zr, n, input, bias, head, h0, one behind the other as kernels.hpp has them.
struct PackedWeights {
  Array zr, n, input, bias, head, h0;
};
template <class T>
PackedWeights pack(const RolloutModel& model, const RolloutLayout& layout);

}  // namespace lockstep::forecast
