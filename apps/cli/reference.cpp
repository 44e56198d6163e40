#include "reference.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "options.hpp"

namespace lockstep::cli {
namespace {

std::vector<std::string> split(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, between);) parts.push_back(part);
  return parts;
}

nlohmann::ordered_json option_of(const CLI::Option& option, const Setting& setting) {
  nlohmann::ordered_json o = {{"name", option.get_positional() ? setting.name : "--" + setting.name}};
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames())
    if (name != setting.name) names.push_back("--" + name);
  if (!names.empty()) o["aliases"] = names;
  const bool flag = option.get_expected_max() == 0;
  o["kind"] = !setting.output && !setting.file && !flag ? "value"
              : setting.folder                          ? "output folder"
              : setting.output                          ? "output file"
              : setting.file                            ? "input"
                                                        : "flag";
  if (!flag) {
    o["value"] = option.get_type_name();
    if (const auto choices = choices_of_placeholder(option.get_type_name()); !choices.empty())
      o["choices"] = choices;
    if (!setting.value.empty()) o["default"] = setting.value;
  }
  if (option.get_positional()) o["positional"] = true;
  if (option.get_required()) o["required"] = true;
  if (setting.display) o["changes_results"] = false;
  o["group"] = option.get_group();
  o["help"] = option.get_description();
  return o;
}

nlohmann::ordered_json command_of(const CLI::App& app) {
  nlohmann::ordered_json c = {{"command", command_path(app)}, {"help", app.get_description()}};
  constexpr std::string_view kExample = "Example:\n  ";
  if (const std::string footer = app.get_footer(); footer.starts_with(kExample))
    c["example"] = footer.substr(kExample.size(), footer.find('\n', kExample.size()) - kExample.size());
  c["options"] = nlohmann::ordered_json::array();
  const std::vector<Setting> settings = settings_of(app);
  for (const CLI::Option* option : app.get_options())
    for (const Setting& setting : settings)
      if (current_of(option) == option && option->get_single_name() == setting.name &&
          option->get_positional() == setting.positional)
        c["options"].push_back(option_of(*option, setting));
  for (const CLI::App* child : const_cast<CLI::App&>(app).get_subcommands([](CLI::App*) { return true; }))
    c["commands"].push_back(command_of(*child));
  return c;
}

}  // namespace

std::vector<std::string> choices_of_placeholder(const std::string& placeholder) {
  constexpr auto kOfOthers = "[]{}<>:,.= ABCDEFGHIJKLMNOPQRSTUVWXYZ";  // "auto|FILE"
  const bool words =
      placeholder.find('|') != std::string::npos && placeholder.find_first_of(kOfOthers) == std::string::npos;
  return words ? split(placeholder, '|') : std::vector<std::string>();
}

std::string reference_of(const CLI::App& app) { return json_text(command_of(app), 2) + "\n"; }

}  // namespace lockstep::cli
