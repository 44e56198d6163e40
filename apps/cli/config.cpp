// --config: options of a command out of a TOML file. Keys are option names without dashes; keys at the top
// hold for every command, those of a table such as [urban.svf] for that command alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "command_line.hpp"
#include "commands.hpp"
#include "io/text/toml.hpp"
#include "lockstep/error.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::cli {
namespace {

// The file that the arguments name, or empty.
std::string config_file(const std::vector<std::string>& arguments) {
  std::string file;
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (arguments[k] == "--") break;
    if (arguments[k].starts_with("--config=")) file = arguments[k].substr(9);
    // An option in place of the file is reported by the parser: the value is missing.
    if (arguments[k] == "--config" && k + 1 < arguments.size() && !arguments[k + 1].starts_with("--"))
      file = arguments[k + 1];
  }
  return file;
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

// Whether the command line has this name of the option.
bool has_name(const std::vector<std::string>& arguments, const CLI::Option& option) {
  for (const std::string& word : arguments) {
    if (word == "--") break;
    for (const std::string& name : option.get_lnames())
      if (word == "--" + name || word.starts_with("--" + name + "=")) return true;
    for (const std::string& name : option.get_snames())
      if (word.starts_with("-" + name)) return true;
  }
  return false;
}

// Whether the command line gives the option itself, by any of its names; its value wins.
bool on_command_line(const std::vector<std::string>& arguments, const CLI::App& app,
                     const CLI::Option& option) {
  for (const CLI::Option* other : app.get_options())
    if (current_of(other) == current_of(&option) && has_name(arguments, *other)) return true;
  return false;
}

/// Options out of the file, as words, for the command that `arguments` name.
class FileOptions {
 public:
  FileOptions(const CLI::App& app, const std::vector<std::string>& arguments, std::string file)
      : app_(app), arguments_(arguments), file_(std::move(file)) {}

  void add(const io::TomlTable& table, const CLI::App& table_app, bool applies) {
    for (const auto& [key, value] : table) {
      const std::string place = fmt::format("{}:{}", file_, value.line());
      if (const auto* inner = value.get<io::TomlTable>()) {
        const CLI::App* child = child_of(table_app, key);
        if (!child)
          throw InputError(fmt::format("unknown command '{}'", key), place, "tables named after commands");
        // A table holds for its command and for those below it.
        bool below = false;
        for (const CLI::App* a = &app_; a; a = a->get_parent()) below = below || a == child;
        add(*inner, *child, below);
        continue;
      }
      if (!applies) continue;
      if (key == "config" || key == "help")
        throw InputError(fmt::format("option '{}' in a file", key), place,
                         "--" + key + " on the command line");
      const CLI::Option* option = app_.get_option_no_throw("--" + key);
      if (!option) {
        std::vector<std::string> names;
        for (const CLI::Option* known : app_.get_options())
          for (const std::string& name : known->get_lnames()) names.push_back(name);
        const std::string nearest = nearest_name(key, names);
        throw InputError(fmt::format("unknown option '{}'", key), place,
                         fmt::format("an option of `{}`", command_path(app_)))
            .with_hint(nearest.empty() ? "" : "did you mean " + nearest + "?");
      }
      const bool given = on_command_line(arguments_, app_, *option);
      const bool is_flag = option->get_expected_max() == 0 || option->get_items_expected_max() == 0;
      if (is_flag) {
        const auto* on = value.get<bool>();
        if (!on) throw InputError(fmt::format("{} for '{}'", value.kind(), key), place, "true or false");
        if (!given) set(option, *on ? "--" + key : "");
      } else {
        if (value.get<bool>())
          throw InputError(fmt::format("a boolean for '{}'", key), place, "a text or a number");
        const std::string text = as_text(value, place);
        if (!given) set(option, fmt::format("--{}={}", key, text));
      }
    }
  }
  std::vector<std::string> words() const {
    std::vector<std::string> words;
    for (const auto& [option, word] : words_)
      if (!word.empty()) words.push_back(word);
    return words;
  }

 private:
  /// A later table's value replaces that of an earlier one.
  void set(const CLI::Option* option, std::string word) {
    std::erase_if(words_, [&](const auto& known) { return known.first == option; });
    words_.emplace_back(option, std::move(word));
  }

  const CLI::App& app_;
  const std::vector<std::string>& arguments_;
  std::string file_;
  std::vector<std::pair<const CLI::Option*, std::string>> words_;
};

}  // namespace

std::vector<std::string> with_config(const std::vector<std::string>& arguments, const CommandList& commands,
                                     const CLI::App& root) {
  const std::string file = config_file(arguments);
  if (file.empty()) return arguments;
  const auto [app, words] = named_command(arguments, root);
  bool known = false;
  for (const auto& command : commands) known = known || command->app == app;
  if (!known) return arguments;  // The usual error will name the command.
  FileOptions options(*app, arguments, file);
  options.add(io::read_toml(file), root, true);
  std::vector<std::string> all(arguments.begin(), arguments.begin() + static_cast<ptrdiff_t>(words));
  for (std::string& word : options.words()) all.push_back(std::move(word));
  all.insert(all.end(), arguments.begin() + static_cast<ptrdiff_t>(words), arguments.end());
  return all;
}

}  // namespace lockstep::cli
