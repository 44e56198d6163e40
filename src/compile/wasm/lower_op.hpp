// Elementary operations as WebAssembly. Operands are scalars or vectors of lanes alike. Results match
// ir/meaning.hpp bit for bit.
#pragma once

#include "compile/wasm/builder.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::compile::wasm {

/// A row LOCKSTEP_OP of ops.def. The amount of a shift may be a scalar where x is a vector.
Value lower_op(Builder& b, ir::Op op, const Value& x, const Value& y = {}, const Value& z = {});
Value lower_convert(Builder& b, const Value& x, Type to);
/// Converts an element from its form in memory (u32 for 8 and 16 bits) to the value of a load, and back.
Value widen(Builder& b, Storage storage, const Value& bits);
Value narrow(Builder& b, Storage storage, const Value& x);
/// v[i] op v[i+s] of a group reduction.
Value lower_reduction(Builder& b, ir::Reduction reduction, const Value& x, const Value& y);
/// The counter of a for_ in the next pass, which stays at the end of its type where it would step past it.
Value next_counter(Builder& b, const ir::Function& function, const ir::Instruction& loop, const Value& now,
                   const Value& step);

}  // namespace lockstep::compile::wasm
