// Kernels that apply every operation of the IR, for parity between devices and for compile checks.
#pragma once

#include <string>
#include <vector>

#include "lockstep/kernel/kernel.hpp"

namespace lockstep::cuda_test {

/// One kernel with its results in slots: element x of slot k is out[k * n + x], as bits in the low end of a
/// u64.
struct Slot {
  std::string name;  // "fadd", "convert to u32" …
  Type type;         // of the result
};
struct OperationKernel {
  Type type;  // of the operands
  std::vector<Slot> slots;
  Kernel kernel;  // (a, b, c: Grid<T, 1>; out: Out<u64, 1>; n: Param<i32>) over n points
};

/// All LOCKSTEP_OP rows that take operands of `type`, and its conversions and bit casts.
OperationKernel operation_kernel(Type type);
/// All LOCKSTEP_MATH rows; f32 or f64.
OperationKernel math_kernel(Type type);

inline constexpr Type kNumberTypes[] = {Type::f32, Type::f64, Type::i32, Type::u32, Type::i64, Type::u64};

}  // namespace lockstep::cuda_test
