// Bytes in texts (RFC 4648).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::io {

std::string base64(std::string_view bytes);
/// Nothing for what base64() does not write.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace lockstep::io
