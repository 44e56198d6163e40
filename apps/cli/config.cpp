// --config: options of a command out of a TOML file. Keys are option names without dashes; keys at the top
// hold for whatever command runs, those of a table such as [urban.svf] for that command alone.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "io/text/toml.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {
namespace {

// The file that the arguments name, or empty.
std::string config_file(const std::vector<std::string>& arguments) {
  std::string file;
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (arguments[k] == "--") break;
    if (arguments[k].starts_with("--config=")) file = arguments[k].substr(9);
    if (arguments[k] == "--config" && k + 1 < arguments.size()) file = arguments[k + 1];
  }
  return file;
}

CLI::App* child_of(const CLI::App& app, const std::string& name) {
  for (CLI::App* child : const_cast<CLI::App&>(app).get_subcommands([](CLI::App*) { return true; })) {
    if (child->get_name() == name) return child;
  }
  return nullptr;
}

std::string as_text(const io::TomlValue& value, const std::string& place) {
  if (const auto* text = value.get<std::string>()) return *text;
  if (const auto* whole = value.get<int64_t>()) return fmt::format("{}", *whole);
  if (const auto* number = value.get<double>()) return fmt::format("{}", *number);
  if (const auto* list = value.get<io::TomlArray>()) {
    std::vector<std::string> parts;
    for (const io::TomlValue& item : *list) parts.push_back(as_text(item, place));
    return fmt::format("{}", fmt::join(parts, ","));
  }
  throw InputError(fmt::format("{} found", value.kind()), place,
                   "a text, a number, true, false or an array of them");
}

void add_options(const io::TomlTable& table, const CLI::App& app, const CLI::App& table_app, bool applies,
                 const std::string& where, std::vector<std::string>& out) {
  for (const auto& [key, value] : table) {
    const std::string place = fmt::format("{}:{}", where, value.line());
    if (const auto* inner = value.get<io::TomlTable>()) {
      const CLI::App* child = child_of(table_app, key);
      if (!child)
        throw InputError(fmt::format("unknown command '{}'", key), place, "tables named after commands");
      // A table holds for its command and for those below it.
      bool below = false;
      for (const CLI::App* a = &app; a; a = a->get_parent()) below = below || a == child;
      add_options(*inner, app, *child, below, where, out);
      continue;
    }
    if (!applies) continue;
    const CLI::Option* option = app.get_option_no_throw("--" + key);
    if (!option || key == "config" || key == "help") {
      throw InputError(fmt::format("unknown option '{}'", key), place,
                       fmt::format("an option of `{}`", command_path(app)));
    }
    const bool is_flag = option->get_expected_max() == 0 || option->get_items_expected_max() == 0;
    if (is_flag) {
      const auto* on = value.get<bool>();
      if (!on) throw InputError(fmt::format("{} for '{}'", value.kind(), key), place, "true or false");
      if (*on) out.push_back("--" + key);
    } else {
      if (value.get<bool>())
        throw InputError(fmt::format("a boolean for '{}'", key), place, "a text or a number");
      out.push_back(fmt::format("--{}={}", key, as_text(value, place)));
    }
  }
}

}  // namespace

std::vector<std::string> with_config(const std::vector<std::string>& arguments, const CommandList& commands,
                                     const CLI::App& root) {
  const std::string file = config_file(arguments);
  if (file.empty()) return arguments;
  size_t words = 0;
  const CLI::App* app = &root;
  while (words < arguments.size()) {
    const CLI::App* child = child_of(*app, arguments[words]);
    if (!child) break;
    app = child;
    ++words;
  }
  bool known = false;
  for (const auto& command : commands) known = known || command->app == app;
  if (!known) return arguments;  // The usual error will name the command.
  std::vector<std::string> options;
  add_options(io::read_toml(file), *app, root, true, file, options);
  std::vector<std::string> all(arguments.begin(), arguments.begin() + static_cast<ptrdiff_t>(words));
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), arguments.begin() + static_cast<ptrdiff_t>(words), arguments.end());
  return all;
}

}  // namespace lockstep::cli
