#include "bound_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/record/journal.hpp"
#include "core/schema/shell_flags.hpp"

namespace lockstep::cli {
namespace {

FileUse use_of(Option::Use use) {
  switch (use) {
    case Option::Use::output_file: return FileUse::output_file;
    case Option::Use::output_folder: return FileUse::output_folder;
    default: return FileUse::input;
  }
}

/// Sets by a text; errors name the flag.
template <class Set>
std::function<void(const std::string&)> setter(CLI::App& app, BoundOptions& bound, const std::string& flag,
                                               Set set) {
  return [&app, &bound, flag, set](const std::string& text) {
    bound.texts[flag] = text;
    try {
      set(bound, text);
    } catch (const OptionError& e) { throw e.in(bound.list->in_shell(command_path(app))); }
  };
}

/// The text of an option for the record. One that was not given has the value that the inputs decided; where neither they nor the
/// struct know it, none.
template <class Text>
std::string value_of(const Option& option, bool given, const Text& text) {
  if (given) return text();
  std::string found = journal::found_value(option.name);
  return !found.empty() || !option.default_note.empty() ? found : text();
}

void bind_option(CLI::App& app, BoundOptions& bound, const Option& option, const Wording& words) {
  const std::string flag = option.positional ? option.flag : "--" + option.flag, name = option.name;
  const std::string help = bound.list->help_of(option, words);
  const auto add = [&](const std::string& flags) -> CLI::Option* {
    if (option.kind == Option::Kind::flag)
      return app.add_flag_callback(
          flags,
          [&bound, name, on = !option.negated] { bound.list->set(bound.options, name, on, bound.given); },
          help);
    const auto set = setter(app, bound, option.flag, [name](BoundOptions& b, const std::string& text) {
      b.list->set_text(b.options, name, text, b.given);
    });
    if (option.positional && option.list)  // all words that follow
      return app.add_option_function<std::vector<std::string>>(
          flags, [set](const std::vector<std::string>& all) { set(fmt::format("{}", fmt::join(all, ","))); },
          help);
    return add_checked(app, flags, help, option.placeholder, set);
  };
  std::string flags;
  for (const std::string& alias : option.aliases) flags += "--" + alias + ",";
  flags += flag;
  CLI::Option* added = add(flags);
  for (const std::string& former : option.former) note_former(add("--" + former), added);
  if (option.required) added->required();
  if (!option.heading.empty()) added->group(option.heading);
  std::string& text = bound.texts[option.flag];
  if (option.use != Option::Use::value) {
    text = option.required ? "" : bound.list->default_text(name);
    note_file(app, flag, text, use_of(option.use));
  }
  const bool is_file = option.use != Option::Use::value;
  note_setting(
      added,
      [&bound, &option, is_file, &text] {
        if (is_file) return text;
        const bool given = bound.given.contains(option.name);
        if (option.negated || is_shell_alone(option)) return std::string(given ? "true" : "false");
        return value_of(option, given, [&] { return bound.list->text(bound.options, option.name); });
      },
      option.effect == Effect::speed || option.effect == Effect::display, is_shell_alone(option));
}

void bind_group(CLI::App& app, BoundOptions& bound, const OptionGroup& group, const Wording& words) {
  const OptionList& list = *bound.list;
  CLI::Option* added =
      add_checked(app, "--" + group.flag, list.help_of(group, words), list.placeholder_of(group),
                  setter(app, bound, group.flag, [&group](BoundOptions& b, const std::string& text) {
                    b.list->set_group(b.options, group, text, b.given);
                  }));
  const Option& first = list.at(list.members_of(group).front());
  if (!first.heading.empty()) added->group(first.heading);
  note_setting(
      added,
      [&bound, &group, &first, added] {
        return value_of(first, added->count() > 0, [&] { return bound.list->text(bound.options, group); });
      },
      false);
}

/// Rules of the schema. Where one part of a text is at fault, the error has the whole.
void finish(BoundOptions& bound) {
  try {
    bound.list->finish(bound.options, bound.given);
  } catch (const OptionError& e) {
    const OptionGroup* group = bound.list->group_of(e.option());
    OptionError::Parts parts = e.parts();
    if (group && !parts.where.empty())
      parts.what = fmt::format("'{}': {}", bound.texts[group->flag], parts.what);
    throw bound.list->error(parts);
  }
}

}  // namespace

void bind(Command& command, BoundOptions& bound, const std::set<std::string>& without) {
  const OptionList& list = *bound.list;
  const Wording words = list.in_shell(command_path(*command.app));
  std::vector<const OptionGroup*> done;
  for (const Option& option : list.options()) {
    const OptionGroup* group = list.group_of(option.name);
    if (!option.in_shell || without.contains(option.name)) continue;
    if (!group) {
      bind_option(*command.app, bound, option, words);
    } else if (std::find(done.begin(), done.end(), group) == done.end()) {
      bind_group(*command.app, bound, *group, words);
      done.push_back(group);
    }
  }
}

bool asked(const Command& command, const std::string& option) {
  return command.bound->given.contains(option);
}

int run_bound(Command& command) {
  const BoundOptions* asked = command.bound_common.get();
  try {
    finish(*command.bound_common);
    if (!command.bound) return command.run();
    asked = command.bound.get();
    take_former(*command.app);
    finish(*command.bound);
    return command.run();
  } catch (const OptionError& e) { throw e.in(asked->list->in_shell(command_path(*command.app))); }
}

std::string option_of_keyword(const Command* command, const std::string& word) {
  if (!command || !command->bound || !word.starts_with("--")) return "";
  std::string name = word.substr(2);
  std::replace(name.begin(), name.end(), '-', '_');
  return command->bound->list->find(name) ? command->bound->list->in_shell("").name(name) : "";
}

}  // namespace lockstep::cli
