// `lockstep forecast`.
#include "forecast_commands.hpp"

namespace lockstep::cli {

void add_forecast(CommandList& commands, CLI::App& root) {
  Command& forecast = add_command(commands, root, "forecast", "forecasts of training runs");
  set_footer(*forecast.app,
             "Example:\n  lockstep forecast rollout --hidden 256 --members 5 --steps 50 --json");
  add_forecast_curve(commands, *forecast.app);
  add_forecast_encode(commands, *forecast.app);
  add_forecast_observe(commands, *forecast.app);
  add_forecast_sweep(commands, *forecast.app);
  add_forecast_rollout(commands, *forecast.app);
  add_forecast_train(commands, *forecast.app);
}

}  // namespace lockstep::cli
