#pragma once

#include "commands.hpp"

namespace lockstep::cli {

/// `flow learn`, `flow rollout` and `flow pipeline`.
void add_flow_surrogate(CommandList& commands, Command& flow);
void add_flow_pipeline(CommandList& commands, Command& flow);

}  // namespace lockstep::cli
