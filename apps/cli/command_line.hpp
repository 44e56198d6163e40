// The command line in the order that the parser needs: a command first, its options behind it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lockstep::cli {

struct CommandLine {
  std::vector<std::string> leading;  // common options before the command, with their values
  std::vector<std::string> rest;     // from the command on; `help COMMAND` is `COMMAND --help` here

  /// The command, then the leading options, then what followed the command. All commands must have been added to `root`.
  std::vector<std::string> ordered(const CLI::App& root) const;
  /// `--version`, with or without `--json`, and nothing else.
  bool asks_version() const;
};

/// `common` is any command: it has the options that every command has.
CommandLine command_line(std::vector<std::string> words, const CLI::App& common);

/// The command of this name below `app`, or null.
CLI::App* child_of(const CLI::App& app, const std::string& name);

/// The innermost command that the first words name, and how many words that takes.
struct NamedCommand {
  const CLI::App* app;
  size_t words;
};
NamedCommand named_command(const std::vector<std::string>& words, const CLI::App& root);

}  // namespace lockstep::cli
