#include "urban/checks/findings.hpp"

#include "core/reports/log.hpp"

namespace lockstep::urban {

Findings::Findings(Errors errors, const Wording& words)
    : errors_(errors), words_(words.name ? words : schema_of<SeriesOptions>().in_cpp()) {}

void Findings::keep(std::string check, const InputError& error) {
  const auto* option = dynamic_cast<const OptionError*>(&error);
  const InputError said = option ? option->in(words_) : error;
  std::string text = said.what();
  if (!said.hint().empty()) text += "; " + said.hint();
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
