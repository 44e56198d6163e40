// Calls replaced by the body of their function. Runs after the contraction of products and sums, which sees each
// function separately: whether a call is replaced changes no bit.
#pragma once

#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

/// Calls of functions that are called at one place or are small. Of the calls that f makes itself.
void inline_small_calls(ir::Function& f);
/// All calls, also those of the functions that are called.
void inline_all_calls(ir::Function& f);

}  // namespace lockstep::compile
