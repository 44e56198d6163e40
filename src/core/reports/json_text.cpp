#include "core/reports/json_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace lockstep {

std::string json_text(const nlohmann::ordered_json& document, int indent) {
  const std::string text =
      document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (size_t k = 0; k < text.size(); ++k) {
    const auto c = static_cast<unsigned char>(text[k]);
    const auto next = static_cast<unsigned char>(k + 1 < text.size() ? text[k + 1] : 0);
    // dump() escapes those below 32. Of Latin-1's, two bytes in UTF-8, the second is the number.
    const bool latin = c == 0xc2 && next >= 0x80 && next < 0xa0;
    if (c == 0x7f || latin)
      out += fmt::format("\\u{:04x}", latin ? next : c);
    else
      out += text[k];
    k += latin;
  }
  return out;
}

}  // namespace lockstep
