// Variables and local arrays become values where their contents are known.
//
// A local array that is only accessed at constant indices inside it becomes one variable per element (0
// before the first set: what was not written has no defined value). A get of a variable is replaced by the
// value last set, where that is the same on every way to it: sets are followed along a block and into nested
// blocks, and forgotten behind a branch that sets the variable and for a loop that does. Runs right after
// inlining, so that the later optimisations see values.
#pragma once

#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

void promote(ir::Function& f);

}  // namespace lockstep::compile
