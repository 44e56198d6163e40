// Options of the hours of sun, and the days that they name.
#include "urban/sunlight/sun_plan.hpp"

#include <fmt/format.h>

namespace lockstep::urban {
namespace {

using Fault = OptionError::Kind;
constexpr int64_t kMostDays = 3660;
constexpr int kRuleYear = 2025;  // of rules, which name none

io::CivilMinutes midnight_of(const std::string& text, const char* option) {
  const auto time = io::parse_iso_time(text + "T00:00");
  if (!time)
    throw sunlight_error(Fault::invalid, option, fmt::format("no day '{}'", text), "such as 2026-03-21");
  return time->minutes;
}

io::CivilMinutes midnight_of(const RuleDay& day, int year) {
  return io::civil_minutes({year, day.month, day.day, 0, 0});
}

std::string text_of(const RuleDay& day) { return fmt::format("{:02}-{:02}", day.month, day.day); }

SunDays period_of(const SunlightOptions& o) {
  if (o.date.empty() == (o.from.empty() && o.to.empty()))
    throw sunlight_error(o.date.empty() ? Fault::missing : Fault::conflict, "",
                         o.date.empty() ? "no day" : "a day and a period",
                         "{date}, {start} and {end}, or {rule}");
  if (o.from.empty() != o.to.empty())
    throw sunlight_error(Fault::missing, o.from.empty() ? "start" : "end", "half a period",
                         "{start} and {end}");
  SunDays days;
  days.first = o.date.empty() ? midnight_of(o.from, "start") : midnight_of(o.date, "date");
  const io::CivilMinutes last = o.date.empty() ? midnight_of(o.to, "end") : days.first;
  days.days = (last - days.first) / io::kMinutesPerDay + 1;
  if (last < days.first || days.days > kMostDays)
    throw sunlight_error(Fault::invalid, "end", fmt::format("a period from {} to {}", o.from, o.to),
                         fmt::format("an end after the start, at most {} days later", kMostDays));
  return days;
}

std::vector<SunDays> days_of_rule(const SunlightOptions& o) {
  const SunRuleFacts& rule = facts_of(o.rule);
  if (!o.from.empty() || !o.to.empty() || (!o.date.empty() && rule.choice.empty()))
    throw sunlight_error(
        Fault::conflict, o.date.empty() ? "start" : "date",
        fmt::format("days next to {{rule}} {}, which names its own", name_among(choices(o.rule), o.rule)),
        "no {date}, {start} and {end} next to it");
  SunDays day;
  day.least_altitude_deg = rule.least_altitude_deg;
  day.from_minute = rule.from_minute;
  day.to_minute = rule.to_minute;
  std::vector<SunDays> all;
  for (const RuleDay& date : rule.days) {
    day.first = midnight_of(date, kRuleYear);
    all.push_back(day);
  }
  if (o.date.empty()) return all;
  all.resize(1);
  all[0].first = midnight_of(o.date, "date");
  const int year = io::civil_time(all[0].first).year;
  if (all[0].first < midnight_of(rule.choice[0], year) || all[0].first > midnight_of(rule.choice[1], year))
    throw sunlight_error(
        Fault::invalid, "date", fmt::format("the day {} for {}", o.date, rule.source),
        fmt::format("a day from {} to {}", text_of(rule.choice[0]), text_of(rule.choice[1])));
  return all;
}

}  // namespace

OptionError sunlight_error(OptionError::Kind kind, const char* option, std::string what,
                           std::string expected) {
  return schema_of<SunlightOptions>().error({kind, option, std::move(what), std::move(expected), ""});
}

std::vector<SunDays> days_of(const SunlightOptions& o) {
  if (io::kMinutesPerDay % o.minutes != 0)
    throw sunlight_error(Fault::invalid, "minutes", fmt::format("parts of {} min", o.minutes),
                         "minutes that divide a day");
  std::vector<SunDays> all = o.rule == SunRule::none ? std::vector<SunDays>{period_of(o)} : days_of_rule(o);
  for (SunDays& days : all) {
    days.minutes = o.minutes;
    days.least_altitude_deg = o.least_altitude_deg.value_or(days.least_altitude_deg);
  }
  return all;
}

void describe(Schema<SunlightOptions>& s) {
  using O = SunlightOptions;
  s.of("urban::SunlightOptions");
  s.include(&O::city);
  s.option("date", &O::date, "day").shown("YYYY-MM-DD");
  s.option("start", &O::from, "first day of a period").member("from").flag("from").shown("YYYY-MM-DD");
  s.option("end", &O::to, "last day").member("to").flag("to").shown("YYYY-MM-DD");
  s.option("rule", &O::rule, "a rule for daylight, with its days: grades of the ground and of facades");
  s.option("latitude", &O::latitude_deg, "latitude, north positive")
      .member("latitude_deg")
      .also("lat")
      .at_least(-90)
      .at_most(90)
      .shown("DEG")
      .or_else("the raster's centre");
  s.option("longitude", &O::longitude_deg, "longitude, east positive")
      .member("longitude_deg")
      .also("lon")
      .at_least(-180)
      .at_most(180)
      .shown("DEG");
  s.option("utc_offset", &O::utc_offset_h, "hours by which the days are ahead of universal time")
      .member("utc_offset_h")
      .at_least(-14)
      .at_most(14)
      .shown("H")
      .or_else("the whole hours of the longitude");
  s.option("minutes", &O::minutes, "minutes between two positions of the sun: a divisor of 1440, at most 60")
      .at_least(1)
      .at_most(60);
  s.option("least_altitude", &O::least_altitude_deg, "lowest altitude of the sun that counts")
      .member("least_altitude_deg")
      .at_least(0)
      .below(90)
      .shown("DEG")
      .or_else("0, or that of {rule}");
  s.option("facades", &O::facades, "also compute hours of walls, in bands of their height (facades.gpkg)");
  s.option("floor_height", &O::floor_height_m, "approximate height of a band of a facade (m)")
      .member("floor_height_m")
      .at_least(0.5)
      .at_most(1e4)
      .shown("M");
  s.option("include_roofs", &O::include_roofs,
           "include roofs, as {dem} defines them, in statistics and pictures, not only ground that people "
           "can use");
  s.include(&O::walls);
  s.include(&O::rays);
  s.include(&O::output);
  s.include(&O::tiles);
  for (const char* name : {"floor_height", "minimum_height", "wall_filter", "wall_ties"})
    s.useless(name, [](const O& o) { return !o.facades; }, "an option without effect", "{facades} too");
  s.useless(
      "include_roofs", [](const O& o) { return o.city.dem.empty(); }, "an option without effect",
      "{dem} too");
}

}  // namespace lockstep::urban
