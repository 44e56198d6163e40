// The days whose sun counts, by the options: a day, a period, or those of a rule.
#pragma once

#include <vector>

#include "urban/sunlight/sun_positions.hpp"
#include "urban/sunlight/sun_rules.hpp"

namespace lockstep::urban {

/// Days without place; the suns of each element are added up. Throws OptionError.
std::vector<SunDays> days_of(const SunlightOptions& options);
/// The error of an option.
OptionError sunlight_error(OptionError::Kind kind, const char* option, std::string what,
                           std::string expected);

}  // namespace lockstep::urban
