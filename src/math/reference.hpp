// The elementary functions on the host: the bodies that expand() writes as IR, run on plain numbers. The same
// bits.
#pragma once

#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::math {

/// `op` of a, and of b where it has two operands.
float evaluate(ir::Op op, float a, float b = 0);
double evaluate(ir::Op op, double a, double b = 0);

/// All rows LOCKSTEP_MATH, in their order.
const std::vector<ir::Op>& functions();

}  // namespace lockstep::math
