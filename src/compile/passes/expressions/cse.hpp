// Common subexpressions: of two equal pure values, or two equal loads of a read-only buffer, of which the
// first dominates the second, the second goes.
//
// A value dominates what follows it in its block and in the blocks nested there. Values without operands
// (constants, parameters, shapes, places) move to the start of the body, so that each exists once. Read-only
// buffers are taken not to overlap written ones. Values that the author stated to be uniform stay in their
// place and only meet their like.
#pragma once

#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

void cse(ir::Function& f);

}  // namespace lockstep::compile
