// The manual page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "bound_options.hpp"
#include "completion/tree.hpp"
#include "version.hpp"

namespace lockstep::cli {
namespace {

/// Text of a manual page.
std::string roff(const std::string& text) {
  std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) out += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '\n' ? " " : std::string(1, c);
  return out;
}

// The options of a command: those of every command, or its own.
void add_manual_options(const CLI::App& app, bool common, std::string& out) {
  for (const CLI::Option* option : app.get_options()) {
    if (current_of(option) != option || option->check_name("--help") ||
        (option->get_group() == kCommonOptions) != common)
      continue;
    std::vector<std::string> names;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    if (names.empty()) names.push_back(option->get_single_name());
    const bool takes_value = !option->get_lnames().empty() && option->get_expected_max() > 0;
    out += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(fmt::format("{}", fmt::join(names, ", "))),
                       takes_value ? fmt::format(" \\fI{}\\fR", roff(option->get_type_name())) : "",
                       roff(option->get_description()));
  }
}

void add_manual(const CLI::App& app, const std::string& path, std::string& out) {
  for (const CLI::App* child : children_of(app)) {
    const std::string name = path + " " + child->get_name();
    if (children_of(*child).empty()) {
      out += fmt::format(".SS {}\n{}.\n", roff(name), roff(child->get_description()));
      add_manual_options(*child, false, out);
    }
    add_manual(*child, name, out);
  }
}

}  // namespace

std::string manual_page(const CLI::App& root) {
  std::string out = fmt::format(
      ".TH LOCKSTEP 1 \"\" \"lockstep {}\"\n.ad l\n.SH NAME\nlockstep \\- {}\n.SH SYNOPSIS\n"
      "\\fBlockstep\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH COMMANDS\n",
      kVersion, roff(root.get_description()));
  add_manual(root, "lockstep", out);
  out += ".SH COMMON OPTIONS\n";
  add_manual_options(*children_of(root).front(), true, out);
  return out +
         ".SH EXIT STATUS\n0 done, 1 a difference or a finding, 2 bad input, 3 no device or a failed "
         "stage.\n";
}

}  // namespace lockstep::cli
