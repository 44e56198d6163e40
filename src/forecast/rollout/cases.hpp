// Cases of rollouts, for src/forecast/cases.cpp.
#pragma once

#include "lockstep/verify.hpp"

namespace lockstep::forecast {

void add_rollout_cases(CaseRegistry& registry);

}  // namespace lockstep::forecast
