// Clocks of thermal stress: the classes of UTCI or PET at a place, around the hours of its days.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/pictures/drawing.hpp"
#include "urban/comfort/comfort.hpp"

namespace lockstep::urban {

/// An index over the part of a day that ends at `hour` (0 … 24).
struct StressHour {
  std::string day;
  double hour = 0, value_c = 0;
};

/// A dial of 24 hours, midnight on top: one ring a day, the first outermost, coloured by class; grey where nothing is
/// known. More than eight days become one ring of their means by the hour. Next to it: the hours in each class.
/// `step_h`: length of a part.
io::Drawing draw_stress_clock(const std::string& title, ComfortIndex index, std::span<const StressHour> hours,
                              double step_h);

/// One clock a point and index out of the rows of a `poi.csv` (header first, with id, time, utci and pet in any case); none
/// for other tables.
std::vector<io::Drawing> stress_clocks(const std::vector<std::vector<std::string>>& rows);

}  // namespace lockstep::urban
