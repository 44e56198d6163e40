// Cases of the radiation's kernels; add_urban_cases adds them.
#pragma once

#include "lockstep/verify.hpp"

namespace lockstep::urban {

void add_radiation_cases(CaseRegistry& registry);

}  // namespace lockstep::urban
