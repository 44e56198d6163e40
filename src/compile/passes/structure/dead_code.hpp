// Removes what no effect depends on.
//
// Effects are stores to buffers, atomics, barriers, group reductions, asynchronous copies and return_. Stores
// to shared and local arrays count only where a live instruction reads the array, sets of a variable only
// where a live get reads it, break_ and continue_ only where their loop holds something live. Also removes
// statements after break_, continue_ and return_ in a block, and jumps to where control goes anyhow. Loops
// are assumed to end. Runs last, and after any pass that leaves dead code.
#pragma once

#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

void dead_code(ir::Function& f);

}  // namespace lockstep::compile
