// Which values a driver's compiler must not see through. WGSL has no way to forbid contraction of a product
// and a sum, or rules such as (a + b) - a = b, (x y) / y = x, (x c) d = x (c d), that change the rounding.
#pragma once

#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::clike {

/// By instruction: products that reach a sum; sums of sums and products of products that share an operand or
/// hold a constant.
std::vector<bool> values_to_fix(const ir::Function& function);

}  // namespace lockstep::clike
