#include "core/schema/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/schema/shell_flags.hpp"

namespace lockstep {
namespace {

std::string values_of(const Option& o) {
  if (o.use == Option::Use::input) return o.choices.empty() ? "file" : "file or name";
  if (o.use != Option::Use::value) return o.use == Option::Use::output_folder ? "folder" : "file";
  if (o.kind == Option::Kind::choice) return fmt::format("{}", fmt::join(o.choices, ", "));
  std::string text = o.expected();
  return text.starts_with("a ") ? text.substr(2) : text;
}

std::string default_of(const OptionList& list, const Option& o) {
  if (o.required) return "required";
  const std::string text = list.default_text(o.name);
  if (text.empty()) return o.default_note.empty() ? "none" : o.default_note;
  return o.default_note.empty() ? text : text + ", " + o.default_note;
}

/// A bar inside of a cell would end it.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

}  // namespace

std::string markdown_table(const OptionList& list) {
  const Wording shell = list.in_shell(""), python = list.in_python("");
  std::string text =
      "| shell | Python | C++ | values | default | changes | |\n|---|---|---|---|---|---|---|\n";
  for (const Option& o : list.options()) {
    const std::string flag = o.in_shell ? fmt::format("`{}`", shell.name(o.name)) : "";
    const std::string help = o.unit.empty() ? o.help : o.help + ", " + o.unit;
    const std::string elsewhere =
        is_shell_alone(o) ? " | " : fmt::format("`{}` | `{}`", python.name(o.name), o.member);
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", flag, elsewhere, escaped(values_of(o)),
                        spelled(default_of(list, o), python), name(o.effect), escaped(spelled(help, python)));
  }
  return text;
}

}  // namespace lockstep
