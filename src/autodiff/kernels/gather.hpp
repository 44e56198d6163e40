// Reads at the point plus constant shifts, transposed: the gradient of an element is the sum, over the reads that hit it,
// of what the lane there contributes. That contribution is computed again at the other point from what it is made of; of a
// linear stencil it is one product with one cotangent, so that the adjoint is a stencil as well.
//
// Lane p reads p + s. Element q is hit by p = q - s, where that is a point; under clamp, an element at the end of an axis
// also by the lanes whose reads end there, and under periodic by q - s brought into the axis. Reads under the rule zero
// look like clamped ones whose values are not used: their contributions are 0. The sum runs in the order of the reads.
#pragma once

#include <array>
#include <optional>

#include "autodiff/kernels/adjoint.hpp"

namespace lockstep::gradients {

enum class Rule : uint8_t { inside, clamp, periodic };
/// One read; by axis of the domain, 0 = x.
struct ShiftedRead {
  ir::Id load;
  std::array<int32_t, 3> shift{};
  std::array<Rule, 3> rule{};
};

/// The active reads of a buffer, where all are of this form and nothing that has an adjoint is in a branch or a loop;
/// else empty.
std::vector<ShiftedRead> shifted_reads(const Plan& plan, uint32_t buffer);
/// Into a kernel over the points of the buffer, which the domain equals; `gradient` is written.
void emit_gather(const Plan& plan, const std::vector<ShiftedRead>& reads, uint32_t gradient, ir::Builder& b);

}  // namespace lockstep::gradients
