// Commands that are one call with the options of a schema.
#pragma once

#include <nlohmann/json.hpp>
#include <type_traits>

#include "bound_options.hpp"
#include "commands.hpp"
#include "session.hpp"

namespace lockstep::cli {

/// A result with its stages on the host: its document (lockstep/APPLICATION/documents.hpp), or `text`.
template <class Result>
void show(Session& session, const Result& result, const std::string& text) {
  if constexpr (requires { result.host_stages; })
    for (const StageRecord& stage : result.host_stages) session.note(stage);
  session.finish(document_of(result), text);
}

/// Whether a command works over the ranks of a launcher.
enum class Ranks : uint8_t { one, several };

/// A command that is work(session, options) or work(command, session, options), which shows its result and gives the exit code.
template <class Options, class Work>
Command& add_call(CommandList& commands, CLI::App& parent, const char* name, const char* help,
                  const char* example, Work work, Ranks ranks = Ranks::one) {
  Command& command = add_command(commands, parent, name, help);
  command.over_ranks = ranks == Ranks::several;
  const Options& options = add_options<Options>(command);
  add_common(command, example);
  command.run = [&command, &options, work] {
    Session session(command.common);
    if constexpr (std::is_invocable_v<Work, Command&, Session&, Options>)
      return work(command, session, Options(options));
    else
      return work(session, Options(options));
  };
  return command;
}

}  // namespace lockstep::cli
