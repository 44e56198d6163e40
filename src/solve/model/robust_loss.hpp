// Robust losses with their scale as a Value.
#pragma once

#include <string>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// rho(s) as solve.hpp defines it. All kinds are concave in s.
Value robust_loss(RobustLoss::Kind kind, const Value& s, const Value& scale);
/// Throws InputError where the scale is not a finite number above 0.
void check_robust_loss(const RobustLoss& loss, const std::string& where);

}  // namespace lockstep::solve
