// The cases `fft.*`.
#pragma once

#include "lockstep/verify.hpp"

namespace lockstep {

void add_fft_cases(CaseRegistry& registry);

}  // namespace lockstep
