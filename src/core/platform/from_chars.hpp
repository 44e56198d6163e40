// std::from_chars, also for f64, which libc++ 19 lacks.
#pragma once

#include <charconv>

namespace lockstep::platform {

using std::from_chars;
#ifdef __wasm__
std::from_chars_result from_chars(const char* begin, const char* end, double& value,
                                  std::chars_format format = std::chars_format::general);
#endif

}  // namespace lockstep::platform
