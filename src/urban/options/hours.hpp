// The text of hours of the day as an option.
#pragma once

#include <optional>
#include <string>

#include "lockstep/schema.hpp"
#include "lockstep/urban/thresholds.hpp"

namespace lockstep::urban {

inline constexpr const char* kHoursForm =
    "FROM-TO, whole hours from 0 to 24 of one day, the first below the second";
std::optional<HourWindow> hours_of(const std::string& text);
std::string hours_text(const std::optional<HourWindow>& hours);
/// Of an option `hours` that no interval of a run is within.
OptionError no_step_error(const HourWindow& hours, int64_t step_min);

}  // namespace lockstep::urban
