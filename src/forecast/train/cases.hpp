// Cases of training.
#pragma once

#include "lockstep/verify.hpp"

namespace lockstep::forecast {

void add_train_cases(CaseRegistry& registry);

}  // namespace lockstep::forecast
