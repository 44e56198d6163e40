#pragma once

#include "lockstep/verify.hpp"

namespace lockstep::forecast {
void add_observe_cases(CaseRegistry& registry);
}
