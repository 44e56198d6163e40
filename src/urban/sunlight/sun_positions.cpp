#include "urban/sunlight/sun_positions.hpp"

#include <cmath>

namespace lockstep::urban {

std::vector<Direction> sun_directions(const SunDays& d) {
  constexpr auto kDay = static_cast<int>(io::kMinutesPerDay);
  Observer observer;
  observer.latitude_deg = d.latitude_deg;
  observer.longitude_deg = d.longitude_deg;
  std::vector<Direction> found;
  for (int64_t day = 0; day < d.days; ++day) {
    const io::CivilTime date = io::civil_time(d.first + day * kDay);
    for (int part = 0; part < kDay / d.minutes; ++part) {
      const double middle = (part + 0.5) * d.minutes;
      if (middle < d.from_minute || middle >= d.to_minute) continue;
      UtcTime time{date.year, date.month, date.day};
      time.minute = middle - d.utc_offset_h * 60;
      const SunPosition sun = sun_position(time, observer);
      if (!(sun.altitude_deg > d.least_altitude_deg)) continue;
      double azimuth = std::fmod(sun.azimuth_deg - d.convergence_deg, 360.0);
      if (azimuth < 0) azimuth += 360;
      found.push_back({azimuth, sun.altitude_deg});
    }
  }
  return found;
}

}  // namespace lockstep::urban
