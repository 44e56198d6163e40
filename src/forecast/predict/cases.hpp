#pragma once

#include "lockstep/verify.hpp"

namespace lockstep::forecast {

/// forecast.jump.*
void add_jump_cases(CaseRegistry& registry);

}  // namespace lockstep::forecast
