// Sizes as callers write them: 8G, 8GiB, 512M, 4096.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

inline constexpr auto kBytesForm = "a size such as 512M or 8G";
/// From 1 on, whole or not of its unit; throws bad_text().
int64_t read_bytes(const std::string& text);
/// In the largest unit that divides them; 0: none.
std::string print_bytes(const int64_t& bytes);

}  // namespace lockstep
