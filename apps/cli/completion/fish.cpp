// Completion for fish: one line for each command and each option.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "completion/tree.hpp"

namespace lockstep::cli {
namespace {

constexpr auto kAt =
    R"(# Whether the words before the cursor name a command: without options and their values, and without `help`.
function __lockstep_at
  set -l at ''
  set -l skip 0
  for word in (commandline -opc)[2..-1]
    if test $skip = 1
      set skip 0
      continue
    end
    switch $word
      case '-*=*'
      case '-*'
        contains -- $word $__lockstep_valued; and set skip 1
      case '*'
        set -l longer (string trim -- "$at $word")
        contains -- $longer $__lockstep_commands; and set at $longer
    end
  end
  test "$at" = "$argv[1]"
end
)";

/// Text between single quotes.
std::string quoted(std::string text) {
  for (size_t k = 0; k < text.size(); ++k)
    if (text[k] == '\'' || text[k] == '\\') text.insert(k++, 1, '\\');
  return "'" + text + "'";
}

std::string quoted_list(const std::vector<std::string>& words) {
  return quoted(fmt::format("{}", fmt::join(words, " ")));
}

const ValueOption* value_option(const std::vector<ValueOption>& all, const std::string& name,
                                const std::string& path) {
  for (const ValueOption& option : all)
    if (option.name == name &&
        (option.paths.empty() || std::ranges::find(option.paths, path) != option.paths.end()))
      return &option;
  return nullptr;
}

void add_lines(const CLI::App& app, const CommandWords*& words, const std::vector<ValueOption>& valued,
               std::string& out) {
  const CommandWords& command = *words++;
  const std::string begin = fmt::format("complete -c lockstep -n \"__lockstep_at '{}'\"", command.path);
  for (const auto& [name, option] : options_of(app)) {
    const ValueOption* values = value_option(valued, name, command.path);
    const std::string takes = !values                   ? ""
                              : values->choices.empty() ? " -r"
                                                        : " -xa " + quoted_list(values->choices);
    out += fmt::format("{} -l {}{} -d {}\n", begin, name.substr(2), takes, quoted(option->get_description()));
  }
  const std::vector<CLI::App*> below = children_of(app);
  if (below.empty() && !command.next.empty())
    out += fmt::format("{} -f -a {}\n", begin, quoted_list(command.next));
  for (const CLI::App* child : below) {
    out += fmt::format("{} -f -a {} -d {}\n", begin, child->get_name(), quoted(child->get_description()));
    add_lines(*child, words, valued, out);
  }
}

}  // namespace

std::string fish_script(const CLI::App& root) {
  const std::vector<CommandWords> commands = command_words(root);
  const std::vector<ValueOption> valued = value_options(root);
  std::string out = "set -g __lockstep_commands";
  for (const CommandWords& command : commands)
    if (!command.path.empty()) out += " " + quoted(command.path);
  out += "\nset -g __lockstep_valued";
  for (const ValueOption& option : valued)
    if (option.paths.empty()) out += " " + option.name;
  out += "\n";
  out += kAt;
  const CommandWords* next = commands.data();
  add_lines(root, next, valued, out);
  return out;
}

}  // namespace lockstep::cli
