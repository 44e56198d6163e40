#include "urban/weather/forcing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "lockstep/error.hpp"
#include "urban/options/errors.hpp"

namespace lockstep::urban {
namespace {

using io::CivilMinutes;
using io::Weather;

/// Zeniths from here on to the horizon count as this one, as published: the beam of a setting sun is no number.
constexpr double kLowestSun = 1;
/// Radiation of more than kNightLimit W/m² while the sun stays below kNightSun is a mistake of clock or place.
constexpr double kNightSun = -4, kNightLimit = 12;
/// W/m²: no beam is stronger, which a horizontal one over the sine of a low sun could be.
constexpr double kStrongestBeam = 1361;

double degrees_0_360(double angle) {
  angle = std::fmod(angle, 360.0);
  return angle < 0 ? angle + 360 : angle;
}

/// Values of a file that the rows around a time share.
class Days {
 public:
  Days(const Site& site, const io::WeatherTable& whole) : site_(site) {
    sums_.push_back(0);
    for (const io::WeatherRow& row : whole.rows) {
      const double air = row[Weather::air_temperature];
      if (!std::isfinite(air)) continue;
      times_.push_back(row.time);
      sums_.push_back(sums_.back() + air);
    }
  }
  /// Of the calendar day.
  double highest_sun(CivilMinutes time) {
    const auto [found, made] = highest_.try_emplace(day_of(time));
    if (made) found->second = highest_altitude(site_, found->first * io::kMinutesPerDay);
    return found->second;
  }
  /// Mean air temperature of the 24 hours around, as far as the file goes.
  double mean_air_c(CivilMinutes time) const {
    const auto place = [&](CivilMinutes t) {
      return static_cast<size_t>(std::upper_bound(times_.begin(), times_.end(), t) - times_.begin());
    };
    const size_t first = place(time - io::kMinutesPerDay / 2), last = place(time + io::kMinutesPerDay / 2);
    return first < last ? (sums_[last] - sums_[first]) / static_cast<double>(last - first) : 0;
  }
  static int64_t day_of(CivilMinutes time) {
    return (time - ((time % io::kMinutesPerDay) + io::kMinutesPerDay) % io::kMinutesPerDay) /
           io::kMinutesPerDay;
  }

 private:
  const Site site_;
  std::vector<CivilMinutes> times_;
  std::vector<double> sums_;  // of the air temperature up to each
  std::map<int64_t, double> highest_;
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

/// Highest of the sun's altitudes at the ends and in the middle of a row's interval.
double highest_sun_of(const io::WeatherTable& rows, const io::WeatherRow& row, const Site& site) {
  return std::max({sun_at(site, row.time).altitude_deg, sun_at(site, row.time - rows.step_min).altitude_deg,
                   sun_of_interval(site, row.time, rows.step_min).altitude_deg});
}

bool shines_at_night(const io::WeatherTable& rows, const io::WeatherRow& row, const Site& site) {
  return row[Weather::global] > kNightLimit && highest_sun_of(rows, row, site) <= kNightSun;
}

void refuse_radiation_at_night(const io::WeatherTable& rows, const io::WeatherRow& row, const Site& site) {
  if (!shines_at_night(rows, row, site)) return;
  throw file_error(
      fmt::format("{:g} W/m² of shortwave radiation at {} while the sun is {:.0f}° below the horizon",
                  row[Weather::global], io::civil_text(row.time), -highest_sun_of(rows, row, site)),
      rows.at(row), "none at night",
      "times are ends of intervals in local standard time: check {utc_offset}, {latitude} and {longitude}");
}

void set_radiation(StepForcing& f, const io::WeatherRow& row, const Site& site, const WeatherRules& rules) {
  f.global_w_m2 = row[Weather::global];
  const double zenith = 90 - f.sun_altitude_deg, sine = std::sin(f.sun_altitude_deg * std::numbers::pi / 180);
  const double diffuse = row[Weather::diffuse];
  const double direct =
      rules.horizontal_direct ? std::min(row[Weather::direct] / sine, kStrongestBeam) : row[Weather::direct];
  const double kt = clearness_ratio(f.global_w_m2, zenith, f.day_of_year);
  BeamAndSky parts = split_global(f.global_w_m2, f.sun_altitude_deg, kt, f.air_c, f.humidity_percent);
  const ClearSky clear = set_clear_sky(f, site.latitude_deg, rules.bands);
  const double most = rules.beam_below_clear_sky ? clear.beam : std::numeric_limits<double>::infinity();
  if (parts.direct > most) parts = {most, f.global_w_m2 - most * sine};
  if (std::isfinite(diffuse)) {
    parts.diffuse = diffuse;
    parts.direct = std::isfinite(direct) ? direct : std::clamp((f.global_w_m2 - diffuse) / sine, 0.0, most);
  } else if (std::isfinite(direct)) {
    parts.direct = direct;
    parts.diffuse = std::max(0.0, f.global_w_m2 - direct * sine);
  }
  f.beam_w_m2 = parts.direct;
  f.diffuse_w_m2 = parts.diffuse;
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
  rules.use_longwave = rules.beam_below_clear_sky = preset == Preset::corrected;
  rules.leaf_on = constants.leaf_on;
  rules.leaf_off = constants.leaf_off;
  rules.leaf_first_day = constants.leaf_first_day;
  rules.leaf_last_day = constants.leaf_last_day;
  return rules;
}

void set_leaves_by_latitude(WeatherRules& rules, double latitude_deg) {
  constexpr int kHalfYear = 183, kYear = 365;
  if (std::abs(latitude_deg) < kTropic) {
    rules.evergreen = true;
  } else if (latitude_deg < 0) {
    rules.leaf_first_day = (rules.leaf_first_day + kHalfYear) % kYear;
    rules.leaf_last_day = (rules.leaf_last_day + kHalfYear) % kYear;
  }
}

void set_leaves(WeatherRules& rules, int first_day, int last_day) {
  rules.evergreen = first_day == last_day + 1;  // the day after the last is the first again
  rules.leaf_first_day = first_day - 1;
  rules.leaf_last_day = last_day + 1;
}

ClearSky set_clear_sky(StepForcing& f, double latitude_deg, LatitudeBands bands) {
  const ClearSky clear = clear_sky(90 - f.sun_altitude_deg, f.day_of_year, f.air_c, f.humidity_percent,
                                   f.pressure_kpa * 10, latitude_deg, bands);
  const BeamAndSky parts = split_global(clear.global, f.sun_altitude_deg, 1, f.air_c, f.humidity_percent);
  f.clear_w_m2 = clear.global;
  f.clear_correction = clear.correction;
  f.clear_beam_w_m2 = parts.direct;
  f.clear_diffuse_w_m2 = parts.diffuse;
  return clear;
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

namespace {

/// An interval of the weather, as a whole and in parts, each with its own sun.
class Interval {
 public:
  Interval(const io::WeatherTable& rows, const io::WeatherRow& row, const Site& site, double convergence_deg,
           const WeatherRules& rules, Days& days)
      : rows_(rows), row_(row), site_(site), rules_(rules), convergence_(convergence_deg) {
    const CivilMinutes middle = row.time - (rows.step_min + 1) / 2;
    StepForcing& f = shared_;
    f.day_max_altitude_deg = days.highest_sun(middle);
    f.day_of_year = io::day_of_year(row.time - 1);  // a minute that belongs to the interval's day
    f.sunrise_h = sunrise_hour(f.day_of_year, site.latitude_deg);
    f.air_c = row[Weather::air_temperature];
    f.humidity_percent = row[Weather::relative_humidity];
    f.wind_m_s = row[Weather::wind_speed];
    f.pressure_kpa = row[Weather::pressure] / 10;
    f.sky_emissivity = sky_emissivity(f.air_c, f.humidity_percent);
    if (rules.use_longwave) f.ldown_w_m2 = row[Weather::longwave_down];
    f.canopy_transmissivity = has_leaves(f.day_of_year, rules) ? rules.leaf_on : rules.leaf_off;
    f.water_c = days.mean_air_c(middle);
  }

  StepForcing whole() const {
    const double stamp = static_cast<double>(row_.time - Days::day_of(row_.time) * io::kMinutesPerDay);
    StepForcing f = under(sun_of_interval(site_, row_.time, rows_.step_min), stamp / 60, 1);
    if (f.day()) set_radiation(f, row_, site_, rules_);
    return f;
  }

  /// None where the sun is down throughout. Means over the interval stay what they were measured to be: what falls on the
  /// horizontal follows the sine of the sun, the beam lasts while the sun is up.
  std::vector<StepForcing> parts() const {
    std::vector<StepForcing> parts;
    const double length = static_cast<double>(rows_.step_min) / rules_.substeps;
    double level = 0, up = 0;
    for (int k = 0; k < rules_.substeps; ++k) {
      const double before_end = (rules_.substeps - k - 0.5) * length;
      const auto minutes = static_cast<double>(row_.time - Days::day_of(row_.time) * io::kMinutesPerDay);
      parts.push_back(
          under(sun_at(site_, row_.time, -before_end), (minutes - before_end) / 60, 1.0 / rules_.substeps));
      up += parts.back().day();
      level += sine_of(parts.back());
    }
    if (up == 0) return {};
    for (StepForcing& f : parts) {
      if (!f.day()) continue;
      io::WeatherRow row = row_;
      const double share = sine_of(f) * rules_.substeps / level;
      row[Weather::global] *= share;
      row[Weather::diffuse] *= share;
      row[Weather::direct] *= rules_.horizontal_direct ? share : rules_.substeps / up;
      set_radiation(f, row, site_, rules_);
    }
    return parts;
  }

 private:
  static double sine_of(const StepForcing& f) {
    return f.day() ? std::sin(f.sun_altitude_deg * std::numbers::pi / 180) : 0;
  }
  StepForcing under(const SunPosition& sun, double stamp_hour, double share) const {
    StepForcing f = shared_;
    f.sun_altitude_deg = sun.altitude_deg >= 0 ? std::max(sun.altitude_deg, kLowestSun) : sun.altitude_deg;
    f.sun_azimuth_deg = degrees_0_360(sun.azimuth_deg - convergence_);
    f.step_days = static_cast<double>(rows_.step_min) * share / io::kMinutesPerDay;
    f.day_fraction = (rules_.clock == SurfaceClock::stamp ? stamp_hour : solar_hour(site_, sun)) / 24;
    f.global_w_m2 = f.beam_w_m2 = f.diffuse_w_m2 = 0;
    return f;
  }

  const io::WeatherTable& rows_;
  const io::WeatherRow& row_;
  const Site& site_;
  const WeatherRules& rules_;
  const double convergence_;
  StepForcing shared_;
};

/// The rows of `whole` directly before `first` that tell a day's last clearness and when it was night, in order of time.
std::vector<io::WeatherRow> earlier_rows(const io::WeatherTable& whole, CivilMinutes first,
                                         const Site& site) {
  std::vector<io::WeatherRow> rows;
  bool night = false;
  CivilMinutes next = first;
  for (auto row = whole.rows.rbegin(); row != whole.rows.rend(); ++row) {
    if (row->time >= first) continue;
    bool usable = row->time == next - whole.step_min && !shines_at_night(whole, *row, site);
    for (const Weather q : {Weather::air_temperature, Weather::relative_humidity, Weather::global})
      usable = usable && std::isfinite((*row)[q]);
    if (!usable) break;
    next = row->time;
    rows.push_back(*row);
    const bool lit = sun_of_interval(site, row->time, whole.step_min).altitude_deg > 0;
    night = night || highest_sun_of(whole, *row, site) <= 0;
    const bool long_ago = first - row->time >= io::kMinutesPerDay;  // warmth has decayed
    if (lit && (night || long_ago)) break;
  }
  std::reverse(rows.begin(), rows.end());
  return rows;
}

}  // namespace

std::vector<WeatherStep> make_forcing(const io::WeatherTable& rows, const io::WeatherTable& whole,
                                      const Site& site, double convergence_deg, const WeatherRules& rules) {
  Days days(site, whole);
  std::vector<WeatherStep> steps;
  steps.reserve(rows.rows.size());
  for (const io::WeatherRow& row : rows.rows) {
    refuse_radiation_at_night(rows, row, site);
    const Interval interval(rows, row, site, convergence_deg, rules, days);
    WeatherStep step{row.time, interval.whole()};
    if (rules.substeps > 1) step.substeps = interval.parts();
    steps.push_back(std::move(step));
  }
  set_night_clearness(steps, rules.night);
  // Clouds are those of the interval: with the sun near the horizon they cannot be determined.
  for (WeatherStep& step : steps)
    for (StepForcing& part : step.substeps) part.clearness = step.forcing.clearness;
  return steps;
}

WeatherSeries make_series(const io::WeatherTable& rows, const io::WeatherTable& whole, const Site& site,
                          double convergence_deg, const WeatherRules& rules) {
  if (rows.rows.empty()) return {};
  io::WeatherTable all = rows;
  all.rows = earlier_rows(whole, rows.rows.front().time, site);
  const auto earlier = static_cast<ptrdiff_t>(all.rows.size());
  all.rows.insert(all.rows.end(), rows.rows.begin(), rows.rows.end());
  WeatherSeries series;
  series.steps = make_forcing(all, whole, site, convergence_deg, rules);
  const auto begin = series.steps.begin() + earlier;
  auto warm = begin;  // the ground forgets at night
  const auto lit = [](const WeatherStep& step) {
    return std::any_of(step.parts().begin(), step.parts().end(), [](const auto& f) { return f.day(); });
  };
  while (warm != series.steps.begin() && lit(*(warm - 1))) --warm;
  series.warm_up.assign(warm, begin);
  series.steps.erase(series.steps.begin(), begin);
  return series;
}

}  // namespace lockstep::urban
