// `lockstep completion bash|zsh|fish`: a completion script made from the commands themselves.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "bound_options.hpp"
#include "commands.hpp"
#include "lockstep/error.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

std::vector<CLI::App*> children(const CLI::App& app) {
  return const_cast<CLI::App&>(app).get_subcommands([](CLI::App*) { return true; });
}

// One `case` branch per command path: the words that may follow it.
void add_branches(const CLI::App& app, const std::string& path, std::string& out) {
  std::vector<std::string> words;
  for (const CLI::App* child : children(app)) words.push_back(child->get_name());
  for (const CLI::Option* option : app.get_options()) {
    if (current_of(option) != option) continue;
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  out += fmt::format("    \"{}\") words=\"{}\" ;;\n", path, fmt::join(words, " "));
  for (const CLI::App* child : children(app))
    add_branches(*child, path.empty() ? child->get_name() : path + " " + child->get_name(), out);
}

void add_choices(const CLI::App& app, std::string& out, std::vector<std::string>& seen) {
  for (const CLI::Option* option : app.get_options()) {
    std::string choices = option->get_type_name();
    if (option->get_lnames().empty() || choices.find('|') == std::string::npos) continue;
    const std::string name = "--" + option->get_lnames().front();
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    std::replace(choices.begin(), choices.end(), '|', ' ');
    out +=
        fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;\n", name, choices);
  }
  for (const CLI::App* child : children(app)) add_choices(*child, out, seen);
}

std::string script(const CLI::App& root, bool zsh) {
  std::string branches, choices;
  std::vector<std::string> seen;
  add_branches(root, "", branches);
  add_choices(root, choices, seen);
  return fmt::format(R"({}_lockstep() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} path="" words="" k
  COMPREPLY=()
  case "$previous" in
    --device) COMPREPLY=($(compgen -W "auto cpu cuda webgpu interp" -- "$current")); return ;;
{}  esac
  for ((k = 1; k < COMP_CWORD; ++k)); do
    case "${{COMP_WORDS[k]}}" in -*) break ;; esac
    path="${{path:+$path }}${{COMP_WORDS[k]}}"
  done
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -o bashdefault -F _lockstep lockstep
)",
                     zsh ? "#compdef lockstep\nautoload -U +X bashcompinit && bashcompinit\n" : "", choices,
                     branches);
}

/// Text between single quotes of fish.
std::string quoted(std::string text) {
  for (size_t k = 0; k < text.size(); ++k)
    if (text[k] == '\'' || text[k] == '\\') text.insert(k++, 1, '\\');
  return "'" + text + "'";
}

// One line for each command and each option of the command path.
void add_fish(const CLI::App& app, const std::string& path, std::string& out) {
  const std::string begin = fmt::format("complete -c lockstep -n \"__lockstep_at '{}'\"", path);
  for (const CLI::Option* option : app.get_options()) {
    if (current_of(option) != option) continue;
    const std::string& type = option->get_type_name();
    const bool choices = type.find('|') != std::string::npos, takes_value = option->get_expected_min() > 0;
    std::string values = choices ? type : "";
    std::replace(values.begin(), values.end(), '|', ' ');
    for (const std::string& name : option->get_lnames())
      out += fmt::format("{} -l {}{} -d {}\n", begin, name,
                         choices       ? " -xa " + quoted(values)
                         : takes_value ? " -r"
                                       : "",
                         quoted(option->get_description()));
  }
  for (const CLI::App* child : children(app)) {
    out += fmt::format("{} -f -a {} -d {}\n", begin, child->get_name(), quoted(child->get_description()));
    add_fish(*child, path.empty() ? child->get_name() : path + " " + child->get_name(), out);
  }
}

std::string fish_script(const CLI::App& root) {
  std::string out = R"(function __lockstep_at
  set -l path
  for word in (commandline -opc)[2..-1]
    string match -q -- '-*' $word; and break
    set path $path $word
  end
  test "$path" = "$argv[1]"
end
)";
  add_fish(root, "", out);
  return out;
}

struct CompletionOptions {
  std::string shell;
};

void describe(Schema<CompletionOptions>& s) {
  s.of("cli::CompletionOptions");
  s.option("shell", &CompletionOptions::shell, "bash, zsh or fish").flag("SHELL").positional().required();
}

}  // namespace

void add_completion(CommandList& commands, CLI::App& root) {
  Command& command =
      add_command(commands, root, "completion", "print a completion script for bash, zsh or fish");
  const CompletionOptions& options = add_options<CompletionOptions>(command);
  add_common(command, "eval \"$(lockstep completion bash)\"");
  command.run = [&options, &root] {
    if (options.shell == "fish")
      print_result(fish_script(root));
    else if (options.shell == "bash" || options.shell == "zsh")
      print_result(script(root, options.shell == "zsh"));
    else
      throw InputError(fmt::format("'{}'", options.shell), "SHELL", "bash, zsh or fish");
    return 0;
  };
}

}  // namespace lockstep::cli
