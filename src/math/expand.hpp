// Bodies of the elementary functions as IR.
#pragma once

#include <span>

#include "lockstep/ir/builder.hpp"

namespace lockstep::math {

/// Appends the body of a LOCKSTEP_MATH row for operands of f32 or f64; gives the result. Arithmetic in the
/// body is final: no pass contracts or reorders it.
ir::Id expand(ir::Builder& builder, ir::Op op, std::span<const ir::Id> args);

/// sin and cos of one operand with one reduction of the angle; the bits of `expand` for each.
struct SinCosIds {
  ir::Id sin, cos;
};
SinCosIds expand_sincos(ir::Builder& builder, ir::Id angle);

}  // namespace lockstep::math
