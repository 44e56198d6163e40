#include "core/schema/bytes.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "core/platform/from_chars.hpp"
#include "lockstep/schema.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kUnits = "KMGT";

}  // namespace

int64_t read_bytes(const std::string& text) {
  double number = 0;
  const auto [end, error] =
      platform::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const std::string_view suffix : {"iB", "B"})
    if (unit.ends_with(suffix)) unit.remove_suffix(suffix.size());
  const size_t power = unit.empty() ? 0 : kUnits.find(unit) + 1;
  const double bytes = number * std::pow(1024.0, static_cast<double>(power));
  if (error != std::errc() || unit.size() > 1 || (!unit.empty() && power == 0) ||
      !(bytes >= 1 && bytes < 0x1p62))
    throw bad_text(fmt::format("'{}'", text), "");
  return static_cast<int64_t>(bytes);
}

std::string print_bytes(const int64_t& bytes) {
  if (bytes == 0) return "";
  int64_t number = bytes;
  size_t power = 0;
  for (; power < kUnits.size() && number % 1024 == 0; ++power) number /= 1024;
  return std::to_string(number) + std::string(power == 0 ? "" : kUnits.substr(power - 1, 1));
}

}  // namespace lockstep
