// The whole program as a function, for its own `main` and for hosts that hold it, such as the Python module.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lockstep::cli {

/// Runs the command that `argv` specifies, reports an error as one line, and returns the exit code. `own`: the words
/// that start this program again (default: this executable).
int program(int argc, char** argv, std::vector<std::string> own = {});

/// Does `work` as the command that the words name ("urban", "run", "--dsm=dsm.tif" …), so that its files get the record that
/// the program would write. Throws what `work` throws. One at a time: another one meanwhile has no record.
void recorded(const std::vector<std::string>& words, const std::function<void()>& work);

}  // namespace lockstep::cli
