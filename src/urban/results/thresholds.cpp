#include "lockstep/urban/thresholds.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "core/numbers/parse_number.hpp"
#include "lockstep/schema.hpp"
#include "lockstep/urban/areas.hpp"

namespace lockstep::urban {

bool HourWindow::holds(int64_t end_min, int64_t step_min) const {
  constexpr int64_t kDayMinutes = 24 * 60;
  const int64_t start = (((end_min - step_min) % kDayMinutes) + kDayMinutes) % kDayMinutes;
  return start >= from * 60 && start + step_min <= to * 60;
}

Threshold parse_threshold(const std::string& text) {
  Threshold t;
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
