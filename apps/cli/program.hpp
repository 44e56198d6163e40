// The whole program as a function, for its own `main` and for hosts that hold it, such as the Python module.
#pragma once

#include <string>
#include <vector>

namespace lockstep::cli {

/// Runs the command that `argv` tells, with errors as one line, and gives the exit code. `own` are the words that start
/// this program anew (default: this executable).
int program(int argc, char** argv, std::vector<std::string> own = {});

}  // namespace lockstep::cli
