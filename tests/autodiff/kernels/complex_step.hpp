// Derivatives of a kernel by complex steps: the kernel with an imaginary part next to each float, by the formulas of complex
// functions. Real parts are those of the kernel, so that branches are taken alike. It shares no rule of differentiation
// with what it checks.
#pragma once

#include "gradient_case.hpp"

namespace lockstep::testing {

/// Of a kernel of f64 in the operations of the random kernels: its buffers of floats have NAME_imaginary next to them, and
/// so have its numbers.
Kernel with_imaginary_parts(const Kernel& kernel);
/// Forward mode of all inputs in a random direction against a complex step, for each element of the outputs.
void expect_complex_step(const GradientCase& c, const Device& device, uint64_t seed);

}  // namespace lockstep::testing
