#pragma once

#include "lockstep/verify.hpp"

namespace lockstep::flow {

/// flow.surrogate.*
void add_surrogate_cases(CaseRegistry& registry);

}  // namespace lockstep::flow
