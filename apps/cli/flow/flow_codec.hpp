#pragma once

#include "commands.hpp"

namespace lockstep::cli {

/// `flow encode` and `flow decode`.
void add_flow_codec(CommandList& commands, Command& flow);

}  // namespace lockstep::cli
