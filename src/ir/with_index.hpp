// The type of element offsets: a trace leaves it open, since a launch knows how large its buffers are.
#pragma once

#include "lockstep/ir/function.hpp"

namespace lockstep::ir {

/// `traced`, whose element offsets have kIndexType, with i32 or i64 in its place. Conversions that change
/// nothing then are left out.
Function with_index(const Function& traced, Type index);

}  // namespace lockstep::ir
