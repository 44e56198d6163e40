// Steps of few sequences, products and gates in one kernel, by groups of 32 lanes: a chain of the sums each, in the order of
// the rollouts (kernels.hpp there).
#pragma once

#include <cstdint>

#include "lockstep/forecast/gru.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::forecast {

/// Sequences side by side up to which steps go by rows, whatever the device, for products have another order. The CPU
/// loses with 8 of 256 units, whose products read U once for four sequences.
inline constexpr int64_t kFewSequences = 4;

/// Groups over `batch` sequences of `hidden` units.
int64_t sequence_groups(int64_t hidden, int64_t batch);

/// Buffers: U^T (3 D, D), of fp8 its scales (3 D), W x + b of the step (B, 3 D), and
///   gates of reset_before   h, z and r of the step's (B, 3 D), r h
///   candidate               r h, h, z r n, the next h
///   gates of reset_after    rb, h, z r n, h U_n + rb_n, the next h
struct SequenceRowKernels {
  Kernel gates, candidate;
};
template <class T, class W = T>
const SequenceRowKernels& sequence_row_kernels(GruForm form, bool several);

}  // namespace lockstep::forecast
