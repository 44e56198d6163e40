// Cases of sorts, runs of equal keys and tables of indices.
#pragma once

#include "lockstep/verify.hpp"

namespace lockstep {

void add_sort_cases(CaseRegistry& registry);

}  // namespace lockstep
