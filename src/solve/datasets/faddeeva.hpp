// The real part of the Faddeeva function w(z) = exp(-z^2) erfc(-iz): Voigt's profile but for its scale.
#pragma once

#include "lockstep/autodiff.hpp"

namespace lockstep::solve {

/// Re w(x + i|y|), by the rational series of J. A. C. Weideman, Computation of the complex error function (SIAM Journal on
/// Numerical Analysis 31, 1994, (38)), with 40 terms: within 2e-15 of 1, and of itself within 1e-11 for |y| of 1e-3 and more.
autodiff::Value real_faddeeva(const autodiff::Value& x, const autodiff::Value& y);

}  // namespace lockstep::solve
