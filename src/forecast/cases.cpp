// The cases of forecast, folder by folder.
#include "forecast/encoder/cases.hpp"

#include "forecast/gru/cases.hpp"
#include "forecast/observe/cases.hpp"
#include "forecast/predict/cases.hpp"
#include "forecast/rollout/cases.hpp"
#include "forecast/train/cases.hpp"
#include "lockstep/verify.hpp"

namespace lockstep {

void add_forecast_cases(CaseRegistry& registry) {
  forecast::add_encoder_cases(registry);
  forecast::add_gru_cases(registry);
  forecast::add_jump_cases(registry);
  forecast::add_observe_cases(registry);
  forecast::add_rollout_cases(registry);
  forecast::add_train_cases(registry);
}

}  // namespace lockstep
