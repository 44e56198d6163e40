#include "io/text/separated_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::io {

std::vector<std::string_view> separated_fields(std::string_view line, char separator,
                                               std::string_view where) {
  constexpr size_t kMostFields = 10'000;
  std::vector<std::string_view> fields;
  while (true) {
    const size_t end = std::min(line.find(separator), line.size());
    std::string_view field = line.substr(0, end);
    const auto idle = [](char c) { return c == ' ' || c == '"' || c == '\t'; };
    while (!field.empty() && idle(field.front())) field.remove_prefix(1);
    while (!field.empty() && idle(field.back())) field.remove_suffix(1);
    fields.push_back(field);
    if (end == line.size()) return fields;
    if (fields.size() == kMostFields)
      throw InputError("too many fields in a line", where, fmt::format("at most {}", kMostFields));
    line.remove_prefix(end + 1);
  }
}

}  // namespace lockstep::io
