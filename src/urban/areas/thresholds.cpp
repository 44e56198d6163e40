// Bounds of outputs as texts.
#include <fmt/format.h>

#include <cmath>

#include "core/numbers/parse_number.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/areas.hpp"

namespace lockstep::urban {

AreaThreshold parse_threshold(const std::string& text) {
  AreaThreshold t;
  t.text = text;
  const size_t sign = text.find_first_of("<>");
  if (sign != text.npos) {
    t.output = text.substr(0, sign);
    t.above = text[sign] == '>';
    t.equal = sign + 1 < text.size() && text[sign + 1] == '=';
  }
  const auto bound = sign == text.npos || sign == 0
                         ? std::nullopt
                         : parse_number<float>(std::string_view(text).substr(sign + 1 + t.equal));
  if (!bound || !std::isfinite(*bound))
    throw schema_of<AreaStatisticsOptions>().error(
        {OptionError::Kind::invalid, "threshold", fmt::format("no bound '{}'", text),
         "an output, <, <=, > or >=, and a number, such as utci>38", ""});
  t.bound = *bound;
  return t;
}

}  // namespace lockstep::urban
