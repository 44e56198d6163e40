// Tables of measurements at a point.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/series/civil_time.hpp"

namespace lockstep::urban {

struct MeasuredTable {
  std::vector<io::CivilMinutes> times;
  int64_t step_min = 60;
  std::optional<double> utc_offset_h;
  /// By the names of poi.csv; where only the four sides were measured, Kside and Lside are their means. NaN =
  /// missing.
  std::map<std::string, std::vector<double>> columns;
};

/// A CSV with `time`, or with `hour` of the day in which `first` lies. Throws InputError naming the line.
MeasuredTable parse_measured(std::string_view text, std::string_view where, io::CivilMinutes first);

}  // namespace lockstep::urban
