// Elementary operations as LLVM instructions; operands are scalars or vectors of lanes alike.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "lockstep/ir/function.hpp"

namespace lockstep::compile::simd {

/// The LLVM type of one lane's value; bool is i1.
llvm::Type* lane_type(llvm::LLVMContext& context, Type type);
/// The LLVM type of an element in memory; f16 and bf16 are i16.
llvm::Type* element_type(llvm::LLVMContext& context, Storage storage);

/// The counter of a for_ in the next pass, which stays at the end of its type where it would step past it: there the loop
/// ends.
llvm::Value* next_counter(llvm::IRBuilderBase& b, const ir::Function& function, const ir::Instruction& loop,
                          llvm::Value* now, llvm::Value* step);

/// A row LOCKSTEP_OP of ops.def. `operand` is the type of the operands; y and z may be null.
llvm::Value* lower_op(llvm::IRBuilderBase& b, ir::Op op, Type operand, llvm::Value* x, llvm::Value* y,
                      llvm::Value* z);
llvm::Value* lower_convert(llvm::IRBuilderBase& b, Type from, Type to, llvm::Value* x);
/// Converts an element from its form in memory to the value of a load, and back (f16 and bf16 round to nearest
/// even).
llvm::Value* widen(llvm::IRBuilderBase& b, Storage storage, llvm::Value* x);
llvm::Value* narrow(llvm::IRBuilderBase& b, Storage storage, llvm::Value* x);
/// v[i] op v[i+s] of a group reduction.
llvm::Value* lower_reduction(llvm::IRBuilderBase& b, ir::Reduction reduction, Type type, llvm::Value* x,
                             llvm::Value* y);

}  // namespace lockstep::compile::simd
