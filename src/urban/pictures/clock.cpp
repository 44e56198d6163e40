#include "urban/pictures/clock.hpp"

#include <fmt/format.h>

#include <cmath>

namespace lockstep::urban {
namespace {

using io::CivilMinutes;

/// 0 Sunday … 6 Saturday.
int64_t weekday(CivilMinutes time) { return ((time / io::kMinutesPerDay + 4) % 7 + 7) % 7; }

/// The n-th Sunday of a month from its start, or the last one for n = 0; midnight.
CivilMinutes sunday(int year, int month, int n) {
  if (n == 0) {
    const CivilMinutes next = sunday(month == 12 ? year + 1 : year, month % 12 + 1, 1);
    return next - 7 * io::kMinutesPerDay;
  }
  const CivilMinutes first = io::civil_minutes({year, month, 1, 0, 0});
  return first + ((7 - weekday(first)) % 7 + 7 * (n - 1)) * io::kMinutesPerDay;
}

bool in_box(const Site& s, double south, double north, double west, double east) {
  return s.latitude_deg >= south && s.latitude_deg <= north && s.longitude_deg >= west &&
         s.longitude_deg <= east;
}

}  // namespace

double summer_time(const Site& site, CivilMinutes local, std::optional<double> saving) {
  if (saving) return *saving;
  const int year = io::civil_time(local).year;
  const auto offset = static_cast<CivilMinutes>(std::lround(60 * site.utc_offset_h));
  // Belarus, Russia and Turkey are on UTC+3 all year; Morocco, Algeria, Tunisia and Kaliningrad keep one clock, too.
  const bool one_clock = (year >= 2011 && offset >= 180) || in_box(site, 34.5, 35.86, -6.5, -3.1) ||
                         in_box(site, 34.5, 35.2, -3.1, -1.7) || in_box(site, 34.5, 37.5, -2.2, 11.6) ||
                         in_box(site, 54.4, 55.05, 19.85, 22.5);
  if (one_clock) return 0;
  // Directive 2000/84/EC: from 01:00 UTC of the last Sunday in March to that of October.
  if (year >= 1996 && in_box(site, 34.5, 71.5, -11, 32)) {
    const CivilMinutes utc = local - offset;
    return utc >= sunday(year, 3, 0) + 60 && utc < sunday(year, 10, 0) + 60 ? 1 : 0;
  }
  // Energy Policy Act of 2005: 02:00 of the second Sunday in March to 02:00 (summer time) of the first in November.
  if (year >= 2007 && in_box(site, 24.5, 70, -168, -52)) {
    const bool arizona = in_box(site, 31.3, 37, -114.8, -109.05),
               saskatchewan = in_box(site, 49, 60, -110, -102),
               yukon = year >= 2021 && in_box(site, 60, 69.7, -141, -124),
               mexico = year >= 2023 &&
                        (in_box(site, 24.5, 31.2, -112.5, -106.6) ||
                         in_box(site, 24.5, 28.9, -106.6, -103.2) || in_box(site, 24.5, 25.8, -103.2, -99.5));
    if (arizona || saskatchewan || yukon || mexico) return 0;
    return local >= sunday(year, 3, 2) + 120 && local < sunday(year, 11, 1) + 60 ? 1 : 0;
  }
  return 0;
}

std::string clock_text(const Site& site, CivilMinutes local, std::optional<double> saving) {
  std::string text = io::civil_text(local);
  text[10] = ' ';
  text += fmt::format(" (UTC{:+g})", site.utc_offset_h);
  const double added = summer_time(site, local, saving);
  if (added == 0) return text;
  const std::string summer = io::civil_text(local + std::lround(60 * added));
  return text + fmt::format(", {}{} summer time",
                            summer.substr(0, 10) == text.substr(0, 10) ? "" : summer.substr(0, 10) + " ",
                            summer.substr(11));
}

}  // namespace lockstep::urban
