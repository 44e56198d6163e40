// Constant folding and algebraic identities that change no bit.
//
// Folding uses ir::meaning, so that a folded operation gives what the interpreter gives. Identities of floats
// are those that hold for every operand, NaN, infinities and both zeros included (x*1, x+(-0), x-0, x/1,
// -(-x), x/2^k = x*2^-k; not x*0, not x-x). Integer arithmetic wraps, so that its ring identities hold.
// Branches on constants disappear. Values that the author stated to be uniform keep their instruction,
// because the statement is attached to it. Runs before cse, to which it gives one form (constants on the
// right), and after it, on what cse and licm uncovered.
#pragma once

#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

void simplify(ir::Function& f);

}  // namespace lockstep::compile
