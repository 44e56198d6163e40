// `lockstep forecast`.
#include "forecast_commands.hpp"

namespace lockstep::cli {

void add_forecast(CommandList& commands, CLI::App& root) {
  Command& forecast = add_command(commands, root, "forecast", "forecasts of training runs");
}

}  // namespace lockstep::cli
