#include "solve/options/texts.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/schema/assignments.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::solve {

Ranges read_ranges(const std::string& text) {
  Ranges ranges;
  for (const auto& [name, value] : assignments_in(text)) {
    const size_t colon = value.find(':');
    if (colon == std::string::npos)
      throw bad_text(fmt::format("'{}'", value), "NAME=LOW:HIGH, inf and -inf for none");
    const double low = number_in(value.substr(0, colon)), high = number_in(value.substr(colon + 1));
    if (!(low < high)) throw bad_text(fmt::format("'{}'", value), "LOW below HIGH");
    ranges[name] = {low, high};
  }
  return ranges;
}

std::string print_ranges(const Ranges& ranges) {
  std::string text;
  for (const auto& [name, range] : ranges)
    text += fmt::format("{}{}={}:{}", text.empty() ? "" : ",", name, range.first, range.second);
  return text;
}

Formulas read_formulas(const std::string& text) {
  Formulas formulas;
  int depth = 0;
  std::string part;
  for (size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (at < text.size() && (c != ',' || depth > 0)) {
      part += c;
      continue;
    }
    const auto trimmed = [](std::string word) {
      word.erase(0, word.find_first_not_of(' '));
      word.erase(word.find_last_not_of(' ') + 1);
      return word;
    };
    const size_t equals = part.find('=');
    if (equals == std::string::npos) throw bad_text(fmt::format("'{}'", part), "");
    const std::string name = trimmed(part.substr(0, equals)), formula = trimmed(part.substr(equals + 1));
    if (name.empty() || formula.empty()) throw bad_text(fmt::format("'{}'", part), "");
    if (!formulas.emplace(name, formula).second)
      throw bad_text(fmt::format("'{}' is repeated", name), "each name once");
    part.clear();
  }
  return formulas;
}

std::string print_formulas(const Formulas& formulas) {
  std::string text;
  for (const auto& [name, formula] : formulas)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, formula);
  return text;
}

Direction read_direction(const std::string& text) {
  std::array<double, 3> v{};
  const std::vector<std::string> parts = parts_in(text);
  bool good = parts.size() == v.size();
  for (size_t k = 0; good && k < v.size(); ++k) {
    v[k] = number_in(parts[k]);
    good = std::isfinite(v[k]);
  }
  if (!good || v == std::array<double, 3>{})
    throw bad_text(fmt::format("'{}'", text), "three numbers X,Y,Z, not all 0");
  return v;
}

std::string print_direction(const Direction& direction) {
  if (!direction) return "";
  return fmt::format("{},{},{}", (*direction)[0], (*direction)[1], (*direction)[2]);
}

}  // namespace lockstep::solve
