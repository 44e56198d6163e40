// The cases of products of 16-bit matrices and of f32 matrices rounded to tf32.
#pragma once

#include "lockstep/verify.hpp"

namespace lockstep {

void add_product_cases(CaseRegistry& registry);

}  // namespace lockstep
