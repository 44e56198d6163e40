// Completion for bash and zsh: one set of functions over the words typed so far, and what hands them to the shell.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "completion/tree.hpp"

namespace lockstep::cli {
namespace {

/// `path`, `commands`, `options` and `words` are variables of zsh itself.
constexpr auto kWalk =
    R"(# Sets `found` to what may follow; empty: a file. Arguments: the word so far, the words before it.
_lockstep_next() {
  local current="$1" at="" option="" word="" below="" flags="" values=""
  shift
  for word in "$@"; do
    if [ -n "$option" ] && _lockstep_values "$at $option"; then option=""; continue; fi
    option=""
    case "$word" in
      -*=*) ;;
      -*) option="$word" ;;
      *) if _lockstep_command "${at:+$at }$word"; then at="${at:+$at }$word"; fi ;;
    esac
  done
  found=""
  if [ -n "$option" ] && _lockstep_values "$at $option"; then found="$values"; return 0; fi
  _lockstep_command "$at"
  case "$current" in
    -*) found="$flags" ;;
    *) found="$below" ;;
  esac
}
)";

std::string tables(const CLI::App& root) {
  std::string out =
      "# Sets `below` and `flags` to the words after a command; false where there is no such command.\n"
      "_lockstep_command() {\n  case \"$1\" in\n";
  for (const CommandWords& command : command_words(root))
    out += fmt::format("    \"{}\") below=\"{}\" flags=\"{}\" ;;\n", command.path,
                       fmt::join(command.next, " "), fmt::join(command.options, " "));
  out +=
      "    *) return 1 ;;\n  esac\n}\n"
      "# Sets `values` to those of \"COMMAND OPTION\"; false where the option takes none.\n"
      "_lockstep_values() {\n  case \"$1\" in\n";
  std::map<std::vector<std::string>, std::vector<std::string>> patterns;
  for (const ValueOption& option : value_options(root)) {
    std::vector<std::string>& of = patterns[option.choices];
    if (option.paths.empty()) of.push_back(fmt::format("*\" {}\"", option.name));
    for (const std::string& path : option.paths) of.push_back(fmt::format("\"{} {}\"", path, option.name));
  }
  for (const auto& [choices, of] : patterns)
    out += fmt::format("    {}) values=\"{}\" ;;\n", fmt::join(of, "|"), fmt::join(choices, " "));
  return out + "    *) return 1 ;;\n  esac\n}\n" + kWalk;
}

}  // namespace

std::string bash_script(const CLI::App& root) {
  return tables(root) + R"(_lockstep() {
  local found="" current="${COMP_WORDS[COMP_CWORD]}" k
  local -a before=()
  for ((k = 1; k < COMP_CWORD; ++k)); do
    if [ "${COMP_WORDS[k]}" != "=" ]; then before+=("${COMP_WORDS[k]}"); fi
  done
  if [ "$current" = "=" ]; then current=""; fi
  _lockstep_next "$current" "${before[@]}"
  COMPREPLY=($(compgen -W "$found" -- "$current"))
}
complete -o default -o bashdefault -F _lockstep lockstep
)";
}

std::string zsh_script(const CLI::App& root) {
  return "#compdef lockstep\n" + tables(root) + R"(_lockstep() {
  local found="" current="${words[CURRENT]}"
  local -a before
  before=("${(@)words[2,CURRENT-1]}")
  if [[ "$current" = --*=* ]]; then
    before+=("${current%%=*}")
    compset -P '*='
    current="$PREFIX"
  fi
  _lockstep_next "$current" "${before[@]}"
  if [[ -n "$found" ]]; then compadd -- ${=found}; else _files; fi
}
if [[ "${funcstack[1]}" = _lockstep ]]; then
  _lockstep  # this file is autoloaded
else
  (( ${+functions[compdef]} )) || { autoload -U compinit && compinit }
  compdef _lockstep lockstep
fi
)";
}

}  // namespace lockstep::cli
