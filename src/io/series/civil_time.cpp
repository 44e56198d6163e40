#include "io/series/civil_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace lockstep::io {
namespace {

std::chrono::sys_days day_of(int year, int month, int day) {
  using namespace std::chrono;
  return sys_days(std::chrono::year(year) / month / 1) + days(day - 1);
}

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

bool is_leap_year(int year) { return std::chrono::year(year).is_leap(); }

bool is_date(int year, int month, int day) {
  // Beyond a byte the calendar's numbers wrap.
  return year >= 1 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 && day <= 31 &&
         (std::chrono::year(year) / month / day).ok();
}

CivilMinutes civil_minutes(const CivilTime& t) {
  return day_of(t.year, t.month, t.day).time_since_epoch().count() * kMinutesPerDay + t.hour * 60 + t.minute;
}

CivilTime civil_time(CivilMinutes minutes) {
  using namespace std::chrono;
  const sys_time<std::chrono::minutes> time{std::chrono::minutes(minutes)};
  const sys_days day = floor<days>(time);
  const year_month_day date(day);
  const auto rest = static_cast<int>((time - day).count());
  return {int(date.year()), static_cast<int>(unsigned(date.month())), static_cast<int>(unsigned(date.day())),
          rest / 60, rest % 60};
}

int day_of_year(CivilMinutes minutes) {
  const CivilTime t = civil_time(minutes);
  return static_cast<int>((day_of(t.year, t.month, t.day) - day_of(t.year, 1, 0)).count());
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

CivilMinutes TimeUnit::minutes_of(double value) const {
  return epoch.minutes + std::llround(value * minutes);
}

std::optional<TimeUnit> parse_time_unit(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"seconds", 1.0 / 60}, {"minutes", 1}, {"hours", 60}, {"days", kMinutesPerDay}};
  constexpr std::string_view kSince = " since ";
  constexpr size_t kDate = 10, kSeconds = 19;  // characters up to there
  for (const auto& [name, minutes] : kUnits) {
    if (!text.starts_with(name) || !text.substr(name.size()).starts_with(kSince)) continue;
    std::string when(text.substr(name.size() + kSince.size()));
    if (when.size() == kDate) when += " 00:00";
    if (when.size() > kSeconds && when[kSeconds] == '.')  // parts of a second, which are 0
      when.erase(kSeconds, when.find_first_not_of("0", kSeconds + 1) - kSeconds);
    std::erase_if(when, [&, at = size_t{0}](char c) mutable { return c == ' ' && at++ > 0; });
    const auto epoch = parse_iso_time(when);
    return epoch ? std::optional(TimeUnit{minutes, *epoch}) : std::nullopt;
  }
  return {};
}

}  // namespace lockstep::io
