// The cases of forecast, folder by folder.
#include "lockstep/verify.hpp"

namespace lockstep {

void add_forecast_cases(CaseRegistry&) {}

}  // namespace lockstep
