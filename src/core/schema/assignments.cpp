#include "core/schema/assignments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/numbers/parse_number.hpp"
#include "lockstep/schema.hpp"

namespace lockstep {

std::vector<std::string> parts_in(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin) throw bad_text(fmt::format("'{}'", text), "values between commas");
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::pair<std::string, std::string>> assignments_in(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> list;
  if (text.empty()) return list;
  for (const std::string& part : parts_in(text)) {
    const size_t equals = part.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == part.size())
      throw bad_text(fmt::format("'{}'", part), "");
    for (const auto& [name, value] : list)
      if (name == part.substr(0, equals))
        throw bad_text(fmt::format("'{}' is repeated", name), "each name once");
    list.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  return list;
}

double number_in(const std::string& text) {
  if (const auto number = parse_number<double>(text)) return *number;
  throw bad_text(fmt::format("'{}'", text), "a number");
}

std::map<std::string, double> read_assignments(const std::string& text) {
  std::map<std::string, double> numbers;
  for (const auto& [name, value] : assignments_in(text)) {
    const double number = number_in(value);
    if (!std::isfinite(number)) throw bad_text(fmt::format("'{}={}'", name, value), "finite numbers");
    numbers[name] = number;
  }
  return numbers;
}

std::string print_assignments(const std::map<std::string, double>& numbers) {
  std::string text;
  for (const auto& [name, value] : numbers)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  return text;
}

}  // namespace lockstep
