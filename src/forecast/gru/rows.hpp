// Steps of few sequences, products and gates in one kernel, by groups of 32 lanes: a chain of the sums each, in the order of
// the rollouts (kernels.hpp there).
#pragma once

#include <cstdint>

#include "device/variants/variants.hpp"
#include "lockstep/forecast/gru.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::forecast {

const variants::Computation& gru_computation();

/// Groups over `batch` sequences of `hidden` units.
int64_t sequence_groups(int64_t hidden, int64_t batch);

/// Buffers: U^T (3 D, D), of fp8 its scales (3 D), W x + b of the step (B, 3 D), and
///   gates of reset_before   h, z and r of the step's (B, 3 D), r h
///   candidate               r h, h, z r n, the next h
///   gates of reset_after    rb, h, z r n, h U_n + rb_n, the next h
/// Of `back`: U of some gates (D, K), of fp8 their scales (K), gradients of these gates (B, K), their product with U^T (B, D);
/// `back_add` adds the product to the gradient of the step before and multiplies the sum by the decay.
struct SequenceRowKernels {
  Kernel gates, candidate, back, back_add;
};
template <class T, class W = T>
const SequenceRowKernels& sequence_row_kernels(GruForm form, bool several);

}  // namespace lockstep::forecast
