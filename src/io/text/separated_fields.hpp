// Fields of a line of a table.
#pragma once

#include <string_view>
#include <vector>

namespace lockstep::io {

/// The fields of a line between separators, without the blanks and quotation marks around them; parts of `line`.
std::vector<std::string_view> separated_fields(std::string_view line, char separator, std::string_view where);

}  // namespace lockstep::io
