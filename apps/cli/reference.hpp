// `lockstep help [COMMAND] --json`: a command, those below it and their options, for manuals and programs that run it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lockstep::cli {

/// One JSON document.
std::string reference_of(const CLI::App& app);

/// A value's placeholder as its choices, where it is nothing else: "exact|fast".
std::vector<std::string> choices_of_placeholder(const std::string& placeholder);

}  // namespace lockstep::cli
