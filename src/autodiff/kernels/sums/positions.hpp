// Where the lanes read: reads through index arrays whose positions no float decides. Their contributions are stored lane
// by lane and then added along a transposed table of the positions (row_sum.hpp).
#pragma once

#include "autodiff/kernels/adjoint.hpp"

namespace lockstep::gradients {

/// The active reads of a buffer but those of the lane's own point, where a lane makes each once at most, at a position and
/// under conditions that are made of coordinates, shapes, numbers and elements of integer buffers that the kernel only
/// reads, one such element at least; else empty.
std::vector<ir::Id> indexed_reads(const Plan& plan, uint32_t buffer);
/// Into a kernel over the lanes whose last two buffers are positions (i32, rank 2: contributions, lanes) and changed (u32, atomic,
/// one element): updates the positions, -1 where a lane does not read, and sets `changed` to 1 if one of them was another.
void emit_positions(const Plan& plan, uint32_t buffer, ir::Builder& b);

}  // namespace lockstep::gradients
