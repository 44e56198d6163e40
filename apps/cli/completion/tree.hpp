// The commands as completion scripts see them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lockstep::cli {

/// The heading of the options that every command has.
inline constexpr auto kCommonOptions = "Common options";

struct CommandWords {
  std::string path;                  // "urban run"; empty: the program
  std::vector<std::string> next;     // commands below it, or the choices of its argument
  std::vector<std::string> options;  // with dashes
};
std::vector<CommandWords> command_words(const CLI::App& root);

/// An option that takes a value.
struct ValueOption {
  std::string name;
  std::vector<std::string> paths;    // of the commands it is meant for; empty: all that have it
  std::vector<std::string> choices;  // empty: any value, most often a file
};
std::vector<ValueOption> value_options(const CLI::App& root);

/// The commands right below one.
std::vector<CLI::App*> children_of(const CLI::App& app);
/// The options of a command, by the names that they have now; the program has those that every command has.
std::vector<std::pair<std::string, const CLI::Option*>> options_of(const CLI::App& app);

std::string bash_script(const CLI::App& root);
std::string zsh_script(const CLI::App& root);
std::string fish_script(const CLI::App& root);
std::string manual_page(const CLI::App& root);

}  // namespace lockstep::cli
