// Random kernels of floats: nested branches and loops of every kind with jumps, variables and arrays of the lane, reads by
// point, shift, rule and index array, updates in place, elements stored more than once. All operations are smooth or
// kinked far from the data, and values stay small.
#pragma once

#include "fuzz/generator.hpp"
#include "gradient_case.hpp"

namespace lockstep::testing {

GradientCase random_gradient_case(uint64_t seed);
/// Groups: shared arrays that lanes exchange values by, barriers and sums of the group in branches and loops.
GradientCase random_group_case(uint64_t seed);

}  // namespace lockstep::testing
