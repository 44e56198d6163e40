// Cases of the state encoder.
#pragma once

#include "lockstep/verify.hpp"

namespace lockstep::forecast {

void add_encoder_cases(CaseRegistry& registry);

}  // namespace lockstep::forecast
