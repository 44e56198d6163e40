// Derivatives of instructions, on values of the kernel that is being traced.
#pragma once

#include <array>
#include <optional>

#include "lockstep/ir/builder.hpp"

namespace lockstep::gradients {

/// g times the partial derivative of an elementary operation, select, convert, rounded or uniform to its operand k;
/// kNone where that is zero. `args` and `result` are values of the kernel that is traced. g has the type of the result
/// (reverse mode) or of the operand (forward mode: `to` is that of the result).
ir::Id partial(const ir::Instruction& i, size_t k, const std::array<ir::Id, 3>& args, ir::Id result, ir::Id g,
               Type to);

/// `part`, made of the derivative g, but 0 where g is 0: a select left it out, regardless of the slope.
ir::Id unless_zero(ir::Builder& b, ir::Id g, ir::Id part);

/// Whether the operation has a derivative anywhere: false for floor and its like.
bool has_derivative(ir::Op op);

/// Whether a lane is the first of its group that has the least or greatest value, to which the whole derivative goes.
ir::Id share_in_extreme(ir::Builder& b, ir::Id value, ir::Id extreme);

}  // namespace lockstep::gradients
