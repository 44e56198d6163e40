// The cases of thermal comfort, among those of urban.
#pragma once

#include "lockstep/verify.hpp"

namespace lockstep::urban {

void add_comfort_cases(CaseRegistry& registry);

}  // namespace lockstep::urban
