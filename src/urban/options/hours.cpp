#include "urban/options/hours.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/numbers/parse_number.hpp"
#include "lockstep/schema.hpp"
#include "lockstep/urban/areas.hpp"

namespace lockstep::urban {

std::optional<HourWindow> hours_of(const std::string& text) {
  const size_t dash = std::min(text.find('-'), text.size());
  const std::string_view all = text;
  const auto from = parse_number<int>(all.substr(0, dash)),
             to = parse_number<int>(all.substr(std::min(dash + 1, all.size())));
  if (!from || !to || *from < 0 || *to > 24 || *from >= *to) throw bad_text(fmt::format("'{}'", text), "");
  return HourWindow{*from, *to};
}

std::string hours_text(const std::optional<HourWindow>& hours) {
  return hours ? fmt::format("{}-{}", hours->from, hours->to) : "";
}

OptionError no_step_error(const HourWindow& hours, int64_t step_min) {
  return schema_of<AreaStatisticsOptions>().error(
      {OptionError::Kind::invalid, "hours", fmt::format("no step from {} to {}", hours.from, hours.to),
       fmt::format("hours for which the run has an interval of {} min", step_min), ""});
}

}  // namespace lockstep::urban
