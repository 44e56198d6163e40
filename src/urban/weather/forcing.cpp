#include "urban/weather/forcing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

using io::CivilMinutes;
using io::Weather;

/// Zeniths from here on to the horizon count as this one, as published: the beam of a setting sun is no number.
constexpr double kLowestSun = 1;
/// Radiation of more than kNightLimit W/m² while the sun stays below kNightSun is a mistake of clock or place.
constexpr double kNightSun = -4, kNightLimit = 12;

double degrees_0_360(double angle) {
  angle = std::fmod(angle, 360.0);
  return angle < 0 ? angle + 360 : angle;
}

/// Data common to the hours of a calendar day.
struct Day {
  double max_altitude_deg = 0, mean_air_c = 0;
};

class Days {
 public:
  Days(const Site& site, const io::WeatherTable& whole) : site_(site) {
    for (const io::WeatherRow& row : whole.rows) {
      const double air = row[Weather::air_temperature];
      if (!std::isfinite(air)) continue;
      auto& [sum, count] = air_[day_of(row.time - whole.step_min)];
      sum += air;
      ++count;
    }
  }
  const Day& at(CivilMinutes time) {
    const int64_t number = day_of(time);
    const auto [found, made] = days_.try_emplace(number);
    if (made) {
      found->second.max_altitude_deg = highest_altitude(site_, number * io::kMinutesPerDay);
      const auto& [sum, count] = air_[number];
      found->second.mean_air_c = count > 0 ? sum / static_cast<double>(count) : 0;
    }
    return found->second;
  }
  static int64_t day_of(CivilMinutes time) {
    return (time - ((time % io::kMinutesPerDay) + io::kMinutesPerDay) % io::kMinutesPerDay) /
           io::kMinutesPerDay;
  }

 private:
  const Site site_;
  std::map<int64_t, std::pair<double, int64_t>> air_;
  std::map<int64_t, Day> days_;
};

/// Hours of true solar time at the middle of an interval.
double solar_hour(const Site& site, const SunPosition& sun) {
  // The hour angle from azimuth and altitude, which hold for any place but the poles.
  constexpr double degree = std::numbers::pi / 180;
  const double azimuth = sun.azimuth_deg * degree, altitude = sun.geometric_altitude_deg * degree,
               latitude = site.latitude_deg * degree;
  const double y = -std::sin(azimuth) * std::cos(altitude);
  const double x =
      std::sin(altitude) * std::cos(latitude) - std::cos(altitude) * std::cos(azimuth) * std::sin(latitude);
  return 12 + std::atan2(y, x) / degree / 15;
}

void refuse_radiation_at_night(const io::WeatherTable& rows, const io::WeatherRow& row, const Site& site,
                               double middle_altitude) {
  const double global = row[Weather::global];
  if (global <= kNightLimit || middle_altitude > kNightSun) return;
  const double highest =
      std::max(sun_at(site, row.time).altitude_deg, sun_at(site, row.time - rows.step_min).altitude_deg);
  if (highest > kNightSun) return;
  throw InputError(
      fmt::format("{:g} W/m² of shortwave radiation at {} while the sun is {:.0f}° below the horizon", global,
                  io::civil_text(row.time), -highest),
      rows.at(row), "none at night")
      .with_hint("times are ends of intervals in local standard time: check --utc-offset, --lat and --lon");
}

void set_radiation(StepForcing& f, const io::WeatherRow& row, const Site& site, const WeatherRules& rules) {
  f.global_w_m2 = row[Weather::global];
  const double zenith = 90 - f.sun_altitude_deg, sine = std::sin(f.sun_altitude_deg * std::numbers::pi / 180);
  const double direct = row[Weather::direct], diffuse = row[Weather::diffuse];
  const double kt = clearness_ratio(f.global_w_m2, zenith, f.day_of_year);
  BeamAndSky parts = split_global(f.global_w_m2, f.sun_altitude_deg, kt, f.air_c, f.humidity_percent);
  if (std::isfinite(diffuse)) {
    parts.diffuse = diffuse;
    parts.direct = std::isfinite(direct) ? direct : std::max(0.0, (f.global_w_m2 - diffuse) / sine);
  } else if (std::isfinite(direct)) {
    parts.direct = direct;
    parts.diffuse = std::max(0.0, f.global_w_m2 - direct * sine);
  }
  f.beam_w_m2 = parts.direct;
  f.diffuse_w_m2 = parts.diffuse;
  const ClearSky clear = clear_sky(zenith, f.day_of_year, f.air_c, f.humidity_percent, f.pressure_kpa * 10,
                                   site.latitude_deg, rules.bands);
  f.clear_w_m2 = clear.global;
  f.clear_correction = clear.correction;
  const BeamAndSky clear_parts =
      split_global(clear.global, f.sun_altitude_deg, 1, f.air_c, f.humidity_percent);
  f.clear_beam_w_m2 = clear_parts.direct;
  f.clear_diffuse_w_m2 = clear_parts.diffuse;
  f.clearness = clearness_index(f.global_w_m2, clear);
}

/// Clearness at night. `carry`: the last of the day. `sunrise`: until the sun rises that of the step after the
/// first with a sun above 1° on that date; after sunset the last of the day.
void set_night_clearness(std::vector<WeatherStep>& steps, NightClearness rule) {
  double last = 1;
  int64_t date = INT64_MIN;
  for (size_t k = 0; k < steps.size(); ++k) {
    StepForcing& f = steps[k].forcing;
    if (rule == NightClearness::sunrise && Days::day_of(steps[k].time) != date) {
      date = Days::day_of(steps[k].time);
      last = 1;
      for (size_t m = k; m + 1 < steps.size() && Days::day_of(steps[m].time) == date; ++m) {
        if (steps[m].forcing.sun_altitude_deg <= 1) continue;
        if (steps[m + 1].forcing.day()) last = steps[m + 1].forcing.clearness;
        break;
      }
    }
    if (f.day())
      last = f.clearness;
    else
      f.clearness = last;
  }
}

}  // namespace

WeatherRules weather_rules(Preset preset, const Constants& constants) {
  WeatherRules rules;
  rules.night = constants.night_clearness;
  rules.bands = preset == Preset::corrected ? LatitudeBands::by_latitude : LatitudeBands::southern_row_one;
  rules.clock = preset == Preset::corrected ? SurfaceClock::solar : SurfaceClock::stamp;
  rules.use_longwave = preset == Preset::corrected;
  rules.leaf_on = constants.leaf_on;
  rules.leaf_off = constants.leaf_off;
  rules.leaf_first_day = constants.leaf_first_day;
  rules.leaf_last_day = constants.leaf_last_day;
  return rules;
}

bool has_leaves(int day, const WeatherRules& rules) {
  if (rules.evergreen) return true;
  if (rules.leaf_first_day <= rules.leaf_last_day)
    return day > rules.leaf_first_day && day < rules.leaf_last_day;
  return day > rules.leaf_first_day || day < rules.leaf_last_day;
}

SunPosition sun_of_interval(const Site& site, CivilMinutes end, int64_t step_min) {
  return sun_at(site, end, -0.5 * static_cast<double>(step_min));
}

std::vector<WeatherStep> make_forcing(const io::WeatherTable& rows, const io::WeatherTable& whole,
                                      const Site& site, double convergence_deg, const WeatherRules& rules) {
  Days days(site, whole);
  std::vector<WeatherStep> steps;
  steps.reserve(rows.rows.size());
  for (const io::WeatherRow& row : rows.rows) {
    WeatherStep step;
    step.time = row.time;
    StepForcing& f = step.forcing;
    const SunPosition sun = sun_of_interval(site, row.time, rows.step_min);
    refuse_radiation_at_night(rows, row, site, sun.altitude_deg);
    const CivilMinutes within = row.time - 1;  // a minute that belongs to the interval's day
    const Day& day = days.at(row.time - (rows.step_min + 1) / 2);
    f.sun_altitude_deg = sun.altitude_deg >= 0 ? std::max(sun.altitude_deg, kLowestSun) : sun.altitude_deg;
    f.sun_azimuth_deg = degrees_0_360(sun.azimuth_deg - convergence_deg);
    f.day_max_altitude_deg = day.max_altitude_deg;
    f.day_of_year = io::day_of_year(within);
    f.sunrise_h = sunrise_hour(f.day_of_year, site.latitude_deg);
    f.step_days = static_cast<double>(rows.step_min) / io::kMinutesPerDay;
    const double stamp_day = static_cast<double>(row.time - Days::day_of(row.time) * io::kMinutesPerDay);
    const double hour = rules.clock == SurfaceClock::stamp ? stamp_day / 60 : solar_hour(site, sun);
    f.day_fraction = hour / 24;
    f.air_c = row[Weather::air_temperature];
    f.humidity_percent = row[Weather::relative_humidity];
    f.wind_m_s = row[Weather::wind_speed];
    f.pressure_kpa = row[Weather::pressure] / 10;
    f.sky_emissivity = sky_emissivity(f.air_c, f.humidity_percent);
    if (rules.use_longwave) f.ldown_w_m2 = row[Weather::longwave_down];
    f.canopy_transmissivity = has_leaves(f.day_of_year, rules) ? rules.leaf_on : rules.leaf_off;
    f.water_c = day.mean_air_c;
    f.global_w_m2 = f.beam_w_m2 = f.diffuse_w_m2 = 0;
    if (f.day()) set_radiation(f, row, site, rules);
    steps.push_back(step);
  }
  set_night_clearness(steps, rules.night);
  return steps;
}

}  // namespace lockstep::urban
