// A document as text that any reader and any terminal takes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockstep {

/// Indented by `indent` spaces, on one line where that is negative. Bytes that are not UTF-8, which names of files may
/// contain, become U+FFFD; all control characters are escaped.
std::string json_text(const nlohmann::ordered_json& document, int indent = -1);

}  // namespace lockstep
