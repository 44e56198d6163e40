// Shifted reads on axes so long that a coordinate and a shift together pass 2^31 - 1.
#pragma once

#include "lockstep/ir/function.hpp"

namespace lockstep::ir {

/// `f` with the shifted coordinates of points, which tracing takes not to wrap, as unsigned numbers: a coordinate and a
/// shift are below 2^32 together.
Function with_long_axes(Function f);

}  // namespace lockstep::ir
