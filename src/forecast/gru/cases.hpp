// Cases of GRU sequences, for src/forecast/cases.cpp.
#pragma once

#include "lockstep/verify.hpp"

namespace lockstep::forecast {

void add_gru_cases(CaseRegistry& registry);

}  // namespace lockstep::forecast
