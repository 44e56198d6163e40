// Options of a command out of the schema of their struct.
#pragma once

#include <map>
#include <set>

#include "lockstep/schema.hpp"
#include "options.hpp"

namespace lockstep::cli {

/// The struct that a command fills.
struct BoundOptions {
  const OptionList* list = nullptr;
  void* options = nullptr;
  Given given;
  std::map<std::string, std::string> texts;  // as typed, by flag
};
template <class Options>
struct Bound : BoundOptions {
  Options value;
};

void bind(Command& command, BoundOptions& bound, const std::set<std::string>& without = {});
/// Adds all options of a struct to a command, which fills it; checks and consequences follow before the command runs.
template <class Options>
Options& add_options(Command& command) {
  const auto bound = std::make_shared<Bound<Options>>();
  bound->list = &schema_of<Options>();
  bound->options = &bound->value;
  command.bound = bound;
  bind(command, *bound);
  return bound->value;
}

/// Whether a flag of the shell alone was given, or an option; by its name.
bool asked(const Command& command, const std::string& option);

/// Checks the options of a command and runs it; errors are in the words of the shell.
int run_bound(Command& command);
/// The flag of the option that Python calls so, or empty.
std::string option_of_keyword(const Command* command, const std::string& word);

}  // namespace lockstep::cli
