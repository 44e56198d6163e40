// group_reduce in CUDA C++: the tree of control.hpp (v[i] op v[i + s] for s = lanes/2 … 1), so the same bits
// as any other order of execution of that tree.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/ir/function.hpp"

namespace lockstep::clike {

std::string reduce_function_name(ir::Reduction op, Type type);
/// Shared bytes that the function wants as `scratch`; 0: it takes none.
int64_t reduce_scratch_bytes(int lanes, Type type);
/// `T name(T v, int lane[, T* scratch])`, called by all lanes of a group of `lanes` (a power of two).
std::string reduce_function(ir::Reduction op, Type type, int lanes);

}  // namespace lockstep::clike
