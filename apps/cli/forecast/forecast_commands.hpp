// The subcommands of `lockstep forecast`, a file each.
#pragma once

#include "commands.hpp"

namespace lockstep::cli {}  // namespace lockstep::cli
