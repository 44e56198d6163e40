#include "io/text/base64.hpp"

#include <cstdint>

namespace lockstep::io {
namespace {
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}  // namespace

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t k = 0; k < bytes.size(); k += 3) {
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j)
      word = word << 8 | (k + j < bytes.size() ? static_cast<unsigned char>(bytes[k + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) out += k + j > bytes.size() ? '=' : kDigits[word >> (18 - 6 * j) & 63];
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string out;
  uint32_t word = 0;
  int bits = 0;
  for (const char digit : text.substr(0, text.find('='))) {
    const size_t value = kDigits.find(digit);
    if (value == kDigits.npos) return std::nullopt;
    word = word << 6 | static_cast<uint32_t>(value);
    if ((bits += 6) < 8) continue;
    out += static_cast<char>(word >> (bits -= 8) & 255);
  }
  if (base64(out) != text) return std::nullopt;
  return out;
}

}  // namespace lockstep::io
