// A number that is a whole text.
#pragma once

#include <optional>
#include <string_view>

#include "core/platform/from_chars.hpp"

namespace lockstep {

/// A leading + is allowed, blanks are not.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const char *begin = text.data() + (text.starts_with('+') ? 1 : 0), *end = text.data() + text.size();
  const auto [at, error] = platform::from_chars(begin, end, number);
  if (begin == end || at != end || error != std::errc()) return std::nullopt;
  return number;
}

}  // namespace lockstep
