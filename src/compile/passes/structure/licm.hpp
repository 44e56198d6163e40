// Loop-invariant motion: pure values whose operands are defined outside of a loop move in front of it.
//
// Pure operations do not trap, so that they may run where the loop makes no pass. Loads of read-only buffers
// move only from places that every entry of the loop reaches: the body of a loop, or of a for_ that surely
// makes a pass, before the first statement that may jump. Values stated to be uniform stay, because the
// statement is about the lanes inside. Runs after cse, and before the second simplification.
#pragma once

#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

void licm(ir::Function& f);

}  // namespace lockstep::compile
