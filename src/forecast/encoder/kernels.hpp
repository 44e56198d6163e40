// Kernels of the state encoder.
#pragma once

#include <vector>

#include "lockstep/kernel.hpp"

namespace lockstep::forecast {

inline constexpr int kEncoderLanes = 64, kEmaScales = 4;
inline constexpr double kEmaWeights[kEmaScales] = {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256};

/// (ring (kSignals, capacity), decay (kEmaScales, >= history), features (states, kFeatures), first, counted, history):
/// group s encodes the state whose newest row is (first + s) mod capacity, of min(counted + s, history) rows. Each
/// lane sums rows lane, lane + kEncoderLanes …; then the lanes' sums are added in their order.
const Kernel& encode_kernel(Storage storage);
/// (features, normalised (states, kFeatures), moments (2, kFeatures): mean and sum of squared deviations, seen): one
/// lane a feature, states in their order; `seen` states are in the moments already.
const Kernel& normalise_kernel(Storage storage);

/// (kEmaScales, history): (1 - weight)^j, 0 below 1e-30.
std::vector<double> decay_table(int64_t history);

}  // namespace lockstep::forecast
