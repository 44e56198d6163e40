#include "urban/checks/weather_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "urban/comfort/comfort.hpp"
#include "urban/options/errors.hpp"

namespace lockstep::urban {
namespace {

using io::Weather;
using io::WeatherRow;
using io::WeatherTable;

constexpr double kInRadians = std::numbers::pi / 180;
constexpr double kExtraterrestrial = 1361;  // W/m², at the mean distance
/// Lower suns say little: horizons, refraction and the course of the sun within an interval.
constexpr double kHighSun = 10;
constexpr double kLittleLight = 50;  // W/m²

double percent_of(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// Great circle, km.
double distance_km(double lat_a, double lon_a, double lat_b, double lon_b) {
  const double u = std::sin((lat_b - lat_a) * kInRadians / 2), v = std::sin((lon_b - lon_a) * kInRadians / 2);
  const double h = u * u + std::cos(lat_a * kInRadians) * std::cos(lat_b * kInRadians) * v * v;
  return 2 * 6371 * std::asin(std::min(1.0, std::sqrt(h)));
}

/// Steps that a criterion picks: how many, and the first.
struct Picked {
  int64_t count = 0;
  const WeatherRow* first = nullptr;
  void take(const WeatherRow& row) {
    if (count++ == 0) first = &row;
  }
  std::string first_text(const WeatherTable& table) const {
    return fmt::format("first at {} [{}]", io::civil_text(first->time), table.at(*first));
  }
};

/// Of a day's step: what reaches a horizontal plane above the atmosphere while the sun is highest within it.
double extraterrestrial(const WeatherTable& rows, const WeatherRow& row, const WeatherStep& step,
                        const Site& site) {
  const double highest = std::max({step.forcing.sun_altitude_deg, sun_at(site, row.time).altitude_deg,
                                   sun_at(site, row.time - rows.step_min).altitude_deg});
  return kExtraterrestrial * sun_distance_factor(step.forcing.day_of_year) * std::sin(highest * kInRadians);
}

void check_global(const WeatherTable& rows, const std::vector<WeatherStep>& steps, const Site& site,
                  Findings& findings) {
  Picked above_sun, above_clear, lit;
  int64_t day = 0;
  double highest_share = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    const StepForcing& f = steps[k].forcing;
    const WeatherRow& row = rows.rows[k];
    if (!f.day()) continue;
    const double global = row[Weather::global], top = extraterrestrial(rows, row, steps[k], site);
    if (global > 1.5 * top + 100)
      findings.refuse(
          "global radiation",
          file_error(fmt::format("{:g} W/m² of shortwave radiation at {}, where {:.0f} W/m² reach the top of "
                                 "the atmosphere (the sun is {:.1f}° high)",
                                 global, io::civil_text(row.time), std::max(top, 0.0), f.sun_altitude_deg),
                     rows.at(row), "no more than the radiation at the top of the atmosphere",
                     "check {utc_offset}, {interval}, {latitude} and {longitude}, and the unit of Kglobal"));
    if (global > 1.1 * top + 30) above_sun.take(row);
    if (f.sun_altitude_deg < kHighSun) continue;
    ++day;
    highest_share = std::max(highest_share, global / f.clear_w_m2);
    if (global > 0) lit.take(row);
    if (global > 1.25 * f.clear_w_m2 + kLittleLight) above_clear.take(row);
  }
  if (day == 0) return;
  if (lit.count == 0)
    findings.warn("global radiation", 0, "W/m²",
                  fmt::format("{}: Kglobal is 0 in all {} steps with the sun above 10°", rows.where, day));
  else if (above_sun.count > 0)
    findings.warn("global radiation", percent_of(above_sun.count, day), "% of day",
                  fmt::format("{}: in {} steps Kglobal exceeds what reaches the top of the atmosphere, {}",
                              rows.where, above_sun.count, above_sun.first_text(rows)));
  else if (10 * above_clear.count > day)
    findings.warn(
        "global radiation", percent_of(above_clear.count, day), "% of day",
        fmt::format("{}: in {} of {} steps Kglobal exceeds a clear sky's by more than a quarter, {}",
                    rows.where, above_clear.count, day, above_clear.first_text(rows)));
  else
    findings.ok("global radiation", highest_share, "of clear sky", "highest share of clear-sky radiation");
}

/// Measured beam and diffuse on the horizontal, against the global.
void check_closure(const WeatherTable& rows, const std::vector<WeatherStep>& steps, bool horizontal,
                   Findings& findings) {
  if (!rows.has(Weather::direct) && !rows.has(Weather::diffuse)) {
    findings.ok("closure", {}, "",
                "beam and diffuse are not measured: global is divided by Reindl et al. (1990)");
    return;
  }
  const bool both = rows.has(Weather::direct) && rows.has(Weather::diffuse);
  Picked open, as_horizontal, zero, beyond;
  int64_t day = 0;
  double sum_parts = 0, sum_global = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    const WeatherRow& row = rows.rows[k];
    const double altitude = steps[k].forcing.sun_altitude_deg, global = row[Weather::global];
    if (altitude < kHighSun || global < kLittleLight) continue;
    ++day;
    const double given = row[Weather::direct], diffuse = row[Weather::diffuse];
    const double beam = std::isfinite(given) ? given * (horizontal ? 1 : std::sin(altitude * kInRadians)) : 0;
    const double parts = beam + (std::isfinite(diffuse) ? diffuse : 0);
    const double allowed = std::max(kLittleLight, 0.15 * global);
    if (both ? std::abs(parts - global) > allowed : parts > global + allowed) open.take(row);
    if (both && !horizontal && std::abs(given + diffuse - global) <= 0.05 * global) as_horizontal.take(row);
    if (both && given == 0 && diffuse == 0) zero.take(row);
    if (given > kExtraterrestrial) beyond.take(row);
    sum_parts += parts;
    sum_global += global;
  }
  if (day == 0) return;
  if (zero.count > 0 && 2 * zero.count >= day)
    return findings.refuse(
        "closure",
        InputError(
            fmt::format("Kdirect and Kdiffuse are 0 in {} of {} steps by day, {}, where Kglobal is {:g} W/m²",
                        zero.count, day, zero.first_text(rows), (*zero.first)[Weather::global]),
            rows.where, "measured values, or no such columns: the global is then divided"));
  const double ratio = sum_parts / sum_global;
  std::string text = fmt::format("beam and diffuse are {:.0f} % of global", 100 * ratio);
  if (!both) {
    const bool beam = rows.has(Weather::direct);
    text = fmt::format("of {} alone, {:.0f} % of global: the {} is the rest of global",
                       beam ? "Kdirect" : "Kdiffuse", 100 * ratio, beam ? "diffuse" : "beam");
  }
  if (open.count == 0 && beyond.count == 0) return findings.ok("closure", 100 * ratio, "%", text);
  if (open.count > 0)
    text = fmt::format(
        "{}: beam on the horizontal and diffuse {} global in {} of {} steps by day by more than 15 %, {}; "
        "over all they are {:.0f} % of it",
        rows.where, both ? "differ from" : "exceed", open.count, day, open.first_text(rows), 100 * ratio);
  else
    text = fmt::format("{}: Kdirect above the solar constant, {}", rows.where, beyond.first_text(rows));
  if (2 * as_horizontal.count > open.count && open.count > 0)
    text += findings.spelled("; Kdirect looks like the beam on the horizontal: {direct} horizontal");
  findings.warn("closure", 100 * ratio, "%", text);
}

}  // namespace

void check_rows(const WeatherTable& rows, const WeatherTable& whole, const std::vector<io::FilledGap>& filled,
                Findings& findings) {
  double highest = 0;
  for (const WeatherRow& row : whole.rows)
    if (const double rh = row[Weather::relative_humidity]; std::isfinite(rh)) highest = std::max(highest, rh);
  if (highest > 0 && highest <= 1.5)
    findings.refuse("humidity", InputError(fmt::format("RH is at most {:g} in all rows", highest),
                                           whole.where, "percent, 0 to 100, not a share"));
  else
    findings.ok("humidity", highest, "%", "highest relative humidity of the file");
  findings.ok("weather", static_cast<double>(rows.rows.size()), "steps",
              fmt::format("{} to {}, every {} min", io::civil_text(rows.rows.front().time),
                          io::civil_text(rows.rows.back().time), rows.step_min));
  if (!whole.unread.empty())
    findings.warn(
        "columns", static_cast<double>(whole.unread.size()), "",
        fmt::format("{}: not read: {}; known are time, Ta, RH, wind, Kglobal, Kdirect, Kdiffuse, Ldown, "
                    "pressure and wind_direction",
                    whole.where, fmt::join(whole.unread, ", ")));
  for (const io::FilledGap& gap : filled)
    findings.warn("gaps", {}, "",
                  fmt::format("{}: {} missing from {} to {}: filled from the values around", whole.where,
                              gap.quantity == "row" ? "rows are" : gap.quantity + " is",
                              io::civil_text(gap.first), io::civil_text(gap.last)));
  if (filled.empty()) findings.ok("gaps", 0, "", "no row and no value is missing");
}

void check_place(const Site& site, const WeatherTable& weather, std::optional<io::LonLat> raster,
                 Findings& findings) {
  constexpr double kFarZone = 2, kFarWeather = 100, kFarRaster = 50;  // hours, km, km
  const double away = std::round(1e3 * std::remainder(site.utc_offset_h - site.longitude_deg / 15, 24)) / 1e3;
  const std::string clock =
      fmt::format("UTC{:+g} at longitude {:.2f}", site.utc_offset_h, site.longitude_deg);
  if (site.utc_offset_h != 0 && std::abs(away) > kFarZone)
    findings.warn("clock", away, "h",
                  fmt::format("{}: the weather's clock, {}, is {:.1f} h away from the sun's", weather.where,
                              clock, std::abs(away)));
  else
    findings.ok("clock", away, "h", clock + (site.utc_offset_h == 0 ? " (universal time)" : ""));
  if (weather.latitude_deg) {
    const double km =
        distance_km(site.latitude_deg, site.longitude_deg, *weather.latitude_deg, *weather.longitude_deg);
    const std::string text =
        fmt::format("the weather is of {:.2f}, {:.2f}, {:.0f} km from the city at {:.2f}, {:.2f}",
                    *weather.latitude_deg, *weather.longitude_deg, km, site.latitude_deg, site.longitude_deg);
    if (km > kFarWeather)
      findings.warn("distance", km, "km", weather.where + ": " + text);
    else
      findings.ok("distance", km, "km", text);
  }
  if (!raster) return;
  const double km = distance_km(site.latitude_deg, site.longitude_deg, raster->lat, raster->lon);
  if (km > kFarRaster)
    findings.warn(
        "place", km, "km",
        fmt::format("the raster is at {:.3f}, {:.3f}, {:.0f} km from the place that is given, {:.3f}, {:.3f}",
                    raster->lat, raster->lon, km, site.latitude_deg, site.longitude_deg));
}

void check_radiation(const WeatherTable& rows, const std::vector<WeatherStep>& steps, const Site& site,
                     bool horizontal_direct, Findings& findings) {
  check_global(rows, steps, site, findings);
  check_closure(rows, steps, horizontal_direct, findings);
}

void check_season(const WeatherRules& rules, double latitude_deg, Findings& findings) {
  constexpr int kJune = 172, kDecember = 355;  // solstices
  const int summer = latitude_deg < 0 ? kDecember : kJune, winter = latitude_deg < 0 ? kJune : kDecember;
  const std::string days = rules.evergreen ? "all year"
                                           : fmt::format("from day {} to {}", rules.leaf_first_day % 366 + 1,
                                                         (rules.leaf_last_day + 364) % 366 + 1);
  const bool seasons = std::abs(latitude_deg) >= kTropic;
  if (seasons && !has_leaves(summer, rules))
    findings.warn("leaves", latitude_deg, "°",
                  fmt::format("trees have leaves {}, none at midsummer of latitude {:.1f}: {}", days,
                              latitude_deg, findings.spelled("{leaf_days} FIRST:LAST")));
  else if (seasons && !rules.evergreen && has_leaves(winter, rules))
    findings.warn("leaves", latitude_deg, "°",
                  fmt::format("trees have leaves {}, also at midwinter of latitude {:.1f}: {}", days,
                              latitude_deg, findings.spelled("{leaf_days} FIRST:LAST, or {evergreen}")));
  else
    findings.ok("leaves", latitude_deg, "°", "trees have leaves " + days);
}

void check_comfort(const WeatherTable& rows, const std::vector<WeatherStep>& steps,
                   const std::vector<double>& measured, const std::vector<double>& taken,
                   Findings& findings) {
  Picked calm, unfitted;
  for (size_t k = 0; k < steps.size(); ++k) {
    const StepForcing& f = steps[k].forcing;
    if (taken[k] != measured[k]) calm.take(rows.rows[k]);
    // The best case: a radiant temperature of the air.
    if (!utci_is_fitted(f.air_c, f.humidity_percent, taken[k], f.air_c)) unfitted.take(rows.rows[k]);
  }
  const auto n = static_cast<int64_t>(steps.size());
  if (calm.count > 0)
    findings.warn(
        "calm hours", static_cast<double>(calm.count), "steps",
        fmt::format(
            "{}: in {} of {} steps the wind at 10 m is below {:g} m/s, the least of UTCI's fit, which "
            "UTCI takes there, {}",
            rows.where, calm.count, n, kUtciLeastWind, calm.first_text(rows)));
  else
    findings.ok("calm hours", 0, "steps", "UTCI takes the measured wind in all steps");
  if (unfitted.count > 0)
    findings.warn(
        "UTCI's fit", static_cast<double>(unfitted.count), "steps",
        fmt::format(
            "{}: {} of {} steps are outside of UTCI's fit (air of -50 to 50 °C, wind to 17 m/s at 10 m, "
            "vapour to 5 kPa), {}: see summary/utci_hours_outside_fit",
            rows.where, unfitted.count, n, unfitted.first_text(rows)));
  else
    findings.ok("UTCI's fit", 0, "steps", "air, wind and vapour of all steps are within UTCI's fit");
}

}  // namespace lockstep::urban
