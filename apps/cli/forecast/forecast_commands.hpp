// The subcommands of `lockstep forecast`, a file each.
#pragma once

#include <string>

#include "commands.hpp"
#include "lockstep/forecast/encoder.hpp"

namespace lockstep::io {
struct TrainingLog;
}

namespace lockstep::cli {

void add_forecast_curve(CommandList& commands, CLI::App& forecast);
void add_forecast_encode(CommandList& commands, CLI::App& forecast);
void add_forecast_observe(CommandList& commands, CLI::App& forecast);
void add_forecast_sweep(CommandList& commands, CLI::App& forecast);
void add_forecast_rollout(CommandList& commands, CLI::App& forecast);
void add_forecast_train(CommandList& commands, CLI::App& forecast);

/// Columns that the features read, the loss among them; flaws of others do not matter.
forecast::SignalTable signals_in(const io::TrainingLog& log, const std::string& loss,
                                 const std::string& where);

}  // namespace lockstep::cli
