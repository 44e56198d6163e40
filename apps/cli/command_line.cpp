#include "command_line.hpp"

#include <CLI/CLI.hpp>

namespace lockstep::cli {

CommandLine command_line(std::vector<std::string> words, const CLI::App& common) {
  CommandLine line;
  size_t k = 0;
  while (k < words.size() && words[k].starts_with('-')) {
    const size_t equals = words[k].find('=');
    const CLI::Option* option = common.get_option_no_throw(words[k].substr(0, equals));
    if (!option || option == common.get_help_ptr()) break;
    const bool takes_value = option->get_expected_min() > 0 && equals == std::string::npos;
    line.leading.push_back(words[k++]);
    if (takes_value && k < words.size()) line.leading.push_back(words[k++]);
  }
  if (k < words.size() && words[k] == "help") {
    words.erase(words.begin() + ptrdiff_t(k));
    words.push_back("--help");
  }
  line.rest.assign(words.begin() + ptrdiff_t(k), words.end());
  return line;
}

std::vector<std::string> CommandLine::ordered(const CLI::App& root) const {
  std::vector<std::string> words = rest;
  words.insert(words.begin() + ptrdiff_t(named_command(rest, root).words), leading.begin(), leading.end());
  return words;
}

bool CommandLine::asks_version() const {
  bool asks = false;
  for (const std::string& word : rest)
    if (word == "--version")
      asks = true;
    else if (word != "--json")
      return false;
  for (const std::string& word : leading)
    if (word != "--json") return false;
  return asks;
}

CLI::App* child_of(const CLI::App& app, const std::string& name) {
  for (CLI::App* child : const_cast<CLI::App&>(app).get_subcommands([](CLI::App*) { return true; }))
    if (child->get_name() == name) return child;
  return nullptr;
}

NamedCommand named_command(const std::vector<std::string>& words, const CLI::App& root) {
  NamedCommand found{&root, 0};
  for (; found.words < words.size(); ++found.words) {
    const CLI::App* child = child_of(*found.app, words[found.words]);
    if (!child) break;
    found.app = child;
  }
  return found;
}

}  // namespace lockstep::cli
