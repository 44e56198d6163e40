#include "urban/checks/findings.hpp"

#include "core/reports/log.hpp"

namespace lockstep::urban {

void Findings::refuse(std::string check, const InputError& error) {
  if (errors_ == Errors::thrown) throw error;
  // Rows go to people at a shell, as the texts of the other checks do.
  const auto* option = dynamic_cast<const OptionError*>(&error);
  std::string text =
      option ? option->in(schema_of<CheckOptions>().in_shell("urban check")).what() : error.what();
  if (!error.hint().empty()) text += "; " + error.hint();
  rows_.push_back({std::move(check), {}, "", Verdict::error, std::move(text)});
}

std::vector<std::string> Findings::warnings() const {
  std::vector<std::string> texts;
  for (const InputCheck& row : rows_)
    if (row.verdict == Verdict::warning) texts.push_back(row.text);
  return texts;
}

void Findings::say() const {
  for (const std::string& text : warnings()) say_doubt(text);
}

void say_doubt(const std::string& text) { logging::line("[lockstep] warning: " + text); }

std::string_view name(Verdict verdict) {
  return verdict == Verdict::ok ? "ok" : verdict == Verdict::warning ? "warning" : "error";
}

}  // namespace lockstep::urban
