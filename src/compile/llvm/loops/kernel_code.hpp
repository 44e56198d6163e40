// Whole kernels: the loops over a box of points or groups around the code of one vector of lanes.
#pragma once

#include "compile/llvm/code_unit.hpp"

namespace lockstep::compile::simd {

/// Lanes of one vector for this kernel on this target.
int choose_width(const ir::Function& function, const VectorTarget& target);

void emit_points(CodeUnit& unit);
void emit_groups(CodeUnit& unit);
/// A function of values, for one vector of lanes.
void emit_function(CodeUnit& unit);

/// Opens `for (i = low; i < high; i += step)`; gives i and the block to close it with.
struct CountedLoop {
  llvm::PHINode* index;
  llvm::BasicBlock *body, *done;
};
CountedLoop open_loop(CodeUnit& unit, llvm::Value* low, llvm::Value* high);
void close_loop(CodeUnit& unit, const CountedLoop& loop, int64_t step);

}  // namespace lockstep::compile::simd
