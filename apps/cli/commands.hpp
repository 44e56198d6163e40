// The commands: each adds itself below a parent and returns what main() runs.
#pragma once

#include <memory>
#include <vector>

#include "options.hpp"

namespace lockstep::cli {

/// All commands that take options, for main() and the completion.
using CommandList = std::vector<std::unique_ptr<Command>>;

/// Adds a command below `parent`.
Command& add_command(CommandList& commands, CLI::App& parent, const std::string& name,
                     const std::string& help);

void add_devices(CommandList& commands, CLI::App& root);
void add_verify(CommandList& commands, CLI::App& root);
void add_bench(CommandList& commands, CLI::App& root);
void add_tune(CommandList& commands, CLI::App& root);
void add_emit(CommandList& commands, CLI::App& root);
void add_report(CommandList& commands, CLI::App& root);
void add_reproduce(CommandList& commands, CLI::App& root);
#define LOCKSTEP_APPLICATION(name) void add_##name(CommandList& commands, CLI::App& root);
#include "applications.def"
#undef LOCKSTEP_APPLICATION
void add_completion(CommandList& commands, CLI::App& root);

/// Arguments with the options of a --config file put before those that were typed, so that the latter win.
std::vector<std::string> with_config(const std::vector<std::string>& arguments, const CommandList& commands,
                                     const CLI::App& root);

}  // namespace lockstep::cli
