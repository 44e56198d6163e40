// The time that a clock on the wall shows.
#pragma once

#include <optional>
#include <string>

#include "urban/weather/solar.hpp"

namespace lockstep::urban {

/// Hours that summer time adds at a time of the weather's clock. By `saving` where it is given; else by the rule of the
/// European Union or of the United States and Canada, by the place; elsewhere 0.
double summer_time(const Site& site, io::CivilMinutes local, std::optional<double> saving);

/// "2015-06-21 15:00 (UTC+1), 16:00 summer time".
std::string clock_text(const Site& site, io::CivilMinutes local, std::optional<double> saving);

}  // namespace lockstep::urban
