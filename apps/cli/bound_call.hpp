// Commands that are one call with the options of a schema.
#pragma once

#include "bound_options.hpp"
#include "commands.hpp"
#include "session.hpp"

namespace lockstep::cli {

/// A command that is work(session, options), which shows its result and gives the exit code.
template <class Options, class Work>
Command& add_call(CommandList& commands, CLI::App& parent, const char* name, const char* help,
                  const char* example, Work work) {
  Command& command = add_command(commands, parent, name, help);
  const Options& options = add_options<Options>(command);
  add_common(command, example);
  command.run = [&command, &options, work] {
    Session session(command.common);
    return work(session, Options(options));
  };
  return command;
}

}  // namespace lockstep::cli
