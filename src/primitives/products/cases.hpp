// The cases of products of 16-bit matrices, and of those that the vendor's library computes in fast numerics.
#pragma once

#include "lockstep/verify.hpp"

namespace lockstep {

void add_product_cases(CaseRegistry& registry);

}  // namespace lockstep
