#include "core/platform/from_chars.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

namespace lockstep::platform {

/// strtod, which rounds correctly, without what it takes and from_chars does not: spaces, '+' and hexadecimal digits.
std::from_chars_result from_chars(const char* begin, const char* end, double& value,
                                  std::chars_format format) {
  const std::string text(begin, std::find_if(begin, end, [&](char c) {
                           return c == 'x' || c == 'X' ||
                                  (format == std::chars_format::fixed && (c == 'e' || c == 'E'));
                         }));
  const char first = text.empty() ? '\0' : text[0];
  if (first == '+' || first == ' ' || (first >= '\t' && first <= '\r'))
    return {begin, std::errc::invalid_argument};
  char* last = nullptr;
  errno = 0;
  const double found = std::strtod(text.c_str(), &last);
  if (last == text.c_str()) return {begin, std::errc::invalid_argument};
  const std::from_chars_result result{begin + (last - text.c_str()),
                                      errno == ERANGE ? std::errc::result_out_of_range : std::errc()};
  if (errno == 0) value = found;
  return result;
}

}  // namespace lockstep::platform
