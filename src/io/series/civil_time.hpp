// Times of a clock without summer time, as weather files give them: minutes since 1970-01-01T00:00.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::io {

using CivilMinutes = int64_t;
inline constexpr CivilMinutes kMinutesPerDay = 1440;

struct CivilTime {
  int year = 1970, month = 1, day = 1, hour = 0, minute = 0;
};

/// Whether the calendar has that day; years 1 to 9999.
bool is_date(int year, int month, int day);
bool is_leap_year(int year);
/// Hours and minutes may lie outside their usual range (hour 24 is the next day's start).
CivilMinutes civil_minutes(const CivilTime& time);
/// Years 1 to 9999.
CivilTime civil_time(CivilMinutes minutes);
/// 1 on the first of January.
int day_of_year(CivilMinutes minutes);
/// "2015-06-21T15:00".
std::string civil_text(CivilMinutes minutes);

struct IsoTime {
  CivilMinutes minutes = 0;
  std::optional<double> utc_offset_h;  ///< where the text ends with "Z" or "+05:45"
};
/// "2015-06-21T15:00", with a blank for the T, with seconds (which must be 0), with an offset; nothing else.
std::optional<IsoTime> parse_iso_time(std::string_view text);

/// The unit of a time axis by the CF conventions: "hours since 1900-01-01 00:00:00.0".
struct TimeUnit {
  double minutes = 1;  ///< of one unit
  IsoTime epoch;
  /// Of the epoch's own clock.
  CivilMinutes minutes_of(double value) const;
};
std::optional<TimeUnit> parse_time_unit(std::string_view text);

}  // namespace lockstep::io
