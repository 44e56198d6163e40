// The subcommands of `lockstep forecast`, a file each.
#pragma once

#include "commands.hpp"

namespace lockstep::cli {

void add_forecast_curve(CommandList& commands, CLI::App& forecast);
void add_forecast_encode(CommandList& commands, CLI::App& forecast);
void add_forecast_observe(CommandList& commands, CLI::App& forecast);
void add_forecast_sweep(CommandList& commands, CLI::App& forecast);
void add_forecast_rollout(CommandList& commands, CLI::App& forecast);
void add_forecast_train(CommandList& commands, CLI::App& forecast);

}  // namespace lockstep::cli
