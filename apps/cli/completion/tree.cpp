#include "completion/tree.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <set>

#include "bound_options.hpp"
#include "reference.hpp"

namespace lockstep::cli {
namespace {

constexpr auto kDevices = {"auto", "cpu", "cuda", "webgpu", "interp"};

std::vector<std::string> choices_of(const CLI::Option& option) {
  if (option.check_lname("device")) return {kDevices.begin(), kDevices.end()};
  return choices_of_placeholder(option.get_type_name());
}

std::string path_below(const std::string& path, const CLI::App& child) {
  return path.empty() ? child.get_name() : path + " " + child.get_name();
}

/// Calls `visit(path, app)` for the program and every command.
template <class Visit>
void each_command(const CLI::App& app, const std::string& path, const Visit& visit) {
  visit(path, app);
  for (const CLI::App* child : children_of(app)) each_command(*child, path_below(path, *child), visit);
}

}  // namespace

std::vector<CLI::App*> children_of(const CLI::App& app) {
  return const_cast<CLI::App&>(app).get_subcommands([](CLI::App*) { return true; });
}

std::vector<std::pair<std::string, const CLI::Option*>> options_of(const CLI::App& app) {
  std::vector<std::pair<std::string, const CLI::Option*>> all;
  const auto add = [&](const CLI::App& from, bool common) {
    for (const CLI::Option* option : from.get_options())
      if (current_of(option) == option && (!common || option->get_group() == kCommonOptions))
        for (const std::string& name : option->get_lnames()) all.emplace_back("--" + name, option);
  };
  add(app, false);
  if (!app.get_parent()) add(*children_of(app).front(), true);
  return all;
}

std::vector<CommandWords> command_words(const CLI::App& root) {
  std::vector<CommandWords> all;
  each_command(root, "", [&](const std::string& path, const CLI::App& app) {
    CommandWords words{path, {}, {}};
    for (const CLI::App* child : children_of(app)) words.next.push_back(child->get_name());
    for (const CLI::Option* option : app.get_options())
      if (option->get_positional() && words.next.empty())
        words.next = choices_of_placeholder(option->get_type_name());
    for (const auto& [name, option] : options_of(app)) words.options.push_back(name);
    all.push_back(std::move(words));
  });
  return all;
}

std::vector<ValueOption> value_options(const CLI::App& root) {
  // By name, then by what may follow: the commands. Flags are among them, to know names that are both.
  std::map<std::string, std::map<std::pair<bool, std::vector<std::string>>, std::vector<std::string>>> found;
  each_command(root, "", [&](const std::string& path, const CLI::App& app) {
    for (const auto& [name, option] : options_of(app))
      found[name][{option->get_expected_min() > 0, choices_of(*option)}].push_back(path);
  });
  std::vector<ValueOption> all;
  for (auto& [name, kinds] : found)
    for (auto& [kind, paths] : kinds)
      if (kind.first)
        all.push_back({name, kinds.size() == 1 ? std::vector<std::string>() : paths, kind.second});
  return all;
}

}  // namespace lockstep::cli
