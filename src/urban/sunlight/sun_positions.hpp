// The sun of the days of a period, part by part.
#pragma once

#include <vector>

#include "io/series/civil_time.hpp"
#include "lockstep/urban.hpp"

namespace lockstep::urban {

struct SunDays {
  io::CivilMinutes first = 0;  ///< midnight at the beginning of the first day, local
  int64_t days = 1;
  double utc_offset_h = 0, latitude_deg = 0, longitude_deg = 0;
  int minutes = 10;
  int from_minute = 0,
      to_minute = static_cast<int>(io::kMinutesPerDay);  ///< of each day: parts beyond do not count
  double least_altitude_deg = 0;
  double convergence_deg = 0;  ///< of the grid's north, which the azimuths count from
};

/// Directions of the sun in the middle of each part of the days that counts and in which its altitude exceeds the least.
std::vector<Direction> sun_directions(const SunDays& days);

}  // namespace lockstep::urban
