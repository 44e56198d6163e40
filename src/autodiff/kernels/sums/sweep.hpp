// Reads of all elements by all lanes, x[j] in a loop over j, transposed: a lane has an element, and its loop runs over the
// lanes that read it. What a lane contributes in one pass is computed again from what it is made of, as in gather.hpp, and
// added to an exact sum (expansion.hpp).
#pragma once

#include "autodiff/kernels/adjoint.hpp"

namespace lockstep::gradients {

/// The active reads of a buffer but those of the lane's own point, where all are of this form: the counter of one loop over
/// elements, the same for all lanes, without records and loops inside, and the only statement with a body that has an
/// adjoint; else empty.
std::vector<ir::Id> swept_reads(const Plan& plan, uint32_t buffer);
/// Into a kernel over the elements of `buffer`, as many as lanes, that writes the last buffer. Before it, if Plan::own, is
/// that of the lanes' contributions to their own points.
void emit_sweep(const Plan& plan, uint32_t buffer, ir::Builder& b);

}  // namespace lockstep::gradients
