#include "io/series/civil_time.hpp"

#include <fmt/format.h>

#include <array>

namespace lockstep::io {
namespace {

constexpr std::array<int, 12> kDaysBefore = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};

/// Days from 1970-01-01 to the first of January.
int64_t days_to_year(int year) {
  const int64_t y = year - 1;
  return 365 * y + y / 4 - y / 100 + y / 400 - 719162;
}

int days_before(int year, int month) {
  return kDaysBefore[static_cast<size_t>(month - 1)] + (month > 2 && is_leap_year(year) ? 1 : 0);
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// Digits at the start of `text`, exactly `count`; they are taken away.
std::optional<int> take_digits(std::string_view& text, size_t count) {
  if (text.size() < count) return {};
  int value = 0;
  for (size_t k = 0; k < count; ++k) {
    if (text[k] < '0' || text[k] > '9') return {};
    value = value * 10 + (text[k] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == any_of.npos) return false;
  text.remove_prefix(1);
  return true;
}

/// "Z", "+02:00", "-0330", "+02" at the end of a time.
bool parse_offset(std::string_view text, std::optional<double>& hours) {
  if (text.empty()) return true;
  if (text == "Z" || text == "z") {
    hours = 0;
    return true;
  }
  const double sign = text.front() == '-' ? -1 : 1;
  if (!take(text, "+-")) return false;
  const auto hour = take_digits(text, 2);
  std::optional<int> minute = 0;
  if (!text.empty()) {
    take(text, ":");
    minute = take_digits(text, 2);
  }
  if (!hour || !minute || !text.empty() || *hour > 14 || *minute > 59) return false;
  hours = sign * (*hour + *minute / 60.0);
  return true;
}

}  // namespace

bool is_leap_year(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

bool is_date(int year, int month, int day) {
  if (year < 1 || year > 9999 || month < 1 || month > 12 || day < 1) return false;
  const int last = month == 12 ? 31 : days_before(year, month + 1) - days_before(year, month);
  return day <= last;
}

CivilMinutes civil_minutes(const CivilTime& t) {
  const int64_t days = days_to_year(t.year) + days_before(t.year, t.month) + t.day - 1;
  return days * kMinutesPerDay + t.hour * 60 + t.minute;
}

CivilTime civil_time(CivilMinutes minutes) {
  const int64_t days = floor_div(minutes, kMinutesPerDay), rest = minutes - days * kMinutesPerDay;
  int year = static_cast<int>(1970 + floor_div(days, days < 0 ? 365 : 366));
  while (days >= days_to_year(year + 1)) ++year;
  const int day = static_cast<int>(days - days_to_year(year));
  int month = 12;
  while (days_before(year, month) > day) --month;
  return {year, month, day - days_before(year, month) + 1, static_cast<int>(rest / 60),
          static_cast<int>(rest % 60)};
}

int day_of_year(CivilMinutes minutes) {
  const CivilTime t = civil_time(minutes);
  return days_before(t.year, t.month) + t.day;
}

std::string civil_text(CivilMinutes minutes) {
  const CivilTime t = civil_time(minutes);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}", t.year, t.month, t.day, t.hour, t.minute);
}

std::optional<IsoTime> parse_iso_time(std::string_view text) {
  const auto year = take_digits(text, 4);
  if (!year || !take(text, "-")) return {};
  const auto month = take_digits(text, 2);
  if (!month || !take(text, "-")) return {};
  const auto day = take_digits(text, 2);
  if (!day || !take(text, "T ")) return {};
  const auto hour = take_digits(text, 2);
  if (!hour || !take(text, ":")) return {};
  const auto minute = take_digits(text, 2);
  if (!minute || !is_date(*year, *month, *day) || *hour > 24 || *minute > 59 || (*hour == 24 && *minute > 0))
    return {};
  if (take(text, ":") && take_digits(text, 2) != 0) return {};
  IsoTime time;
  if (!parse_offset(text, time.utc_offset_h)) return {};
  time.minutes = civil_minutes({*year, *month, *day, *hour, *minute});
  return time;
}

}  // namespace lockstep::io
