// Kernels of the state encoder.
#pragma once

#include <span>
#include <vector>

#include "lockstep/kernel.hpp"

namespace lockstep::forecast {

inline constexpr int kEncoderLanes = 256, kEmaScales = 4;
inline constexpr double kEmaWeights[kEmaScales] = {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256};

/// Columns before the first row that a kernel may read; their contents are arbitrary but finite.
inline constexpr int kColumnsBefore = kEncoderLanes + 2;

/// (ring (kSignals, columns), decay (kEmaScales, decay_columns(history) or more), features (states, kFeatures), newest,
/// counted, history): group s encodes the state whose newest row is in column newest + s, older ones before it, of
/// min(counted + s, history) rows. Chain c of kEncoderLanes sums the rows c, c + kEncoderLanes … before the newest;
/// then the sums of eight neighbouring chains are added in their order, then those in theirs. Lane l has chain
/// kEncoderLanes - 1 - l, so that neighbours read neighbours.
const Kernel& encode_kernel(Storage storage);
/// (features, normalised (states, kFeatures), moments (2, kFeatures): mean and sum of squared deviations, seen): one
/// lane a feature, states in their order; `seen` states are in the moments already.
const Kernel& normalise_kernel(Storage storage);

/// (kEmaScales, decay_columns): (1 - weight)^j, 0 below 1e-30; j in the lanes' order, the last of each
/// kEncoderLanes first.
int64_t decay_columns(int64_t history);
std::vector<double> decay_table(int64_t history);

/// Signal after signal with kColumnsBefore zeros before each.
std::vector<double> with_columns_before(std::span<const double> values, int64_t signals);

}  // namespace lockstep::forecast
