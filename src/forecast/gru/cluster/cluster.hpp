// The native kernel of sequences: a cluster of 16 blocks each on sm_90, all steps in one launch, with the bits of the steps by
// rows in exact numerics.
#pragma once

#include <string>

#include "lockstep/forecast/gru.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::forecast {

/// Why no cluster runs such a sequence on the device; empty: one does.
std::string no_sequence_cluster(const Device& device, const GruShape& shape);

/// Launched over B groups. Buffers and numbers: U^T (3 D, D), W x + b (T B, 3 D), states ((T + 1) B, D) that begin with h0, and as
/// results z r n (T B, 3 D) and r h, or h U_n + rb_n (T B, D); with reset_after rb (3 D); T, B.
Kernel sequence_kernel(GruForm form);
/// The same by a cluster of a size that no_sequence_cluster() accepts.
Kernel sequence_cluster(GruForm form, int64_t hidden, Numerics numerics);

}  // namespace lockstep::forecast
