#include "urban/weather/solar.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "urban/angles.hpp"

namespace lockstep::urban {
namespace {

constexpr double kSolarConstant = 1370;

/// G of Smith (1966): rows of 10° latitude, columns winter, spring, summer, autumn of the northern half.
constexpr double kWaterVapour[9][4] = {
    {3.37, 2.85, 2.80, 2.64}, {2.99, 3.02, 2.70, 2.93}, {3.60, 3.00, 2.98, 2.93},
    {3.04, 3.11, 2.92, 2.94}, {2.70, 2.95, 2.77, 2.71}, {2.52, 3.07, 2.67, 2.93},
    {1.76, 2.69, 2.61, 2.61}, {1.60, 1.67, 2.24, 2.63}, {1.11, 1.44, 1.94, 2.02}};

int season(int day_of_year) {
  if (day_of_year > 335 || day_of_year <= 60) return 0;
  return day_of_year <= 152 ? 1 : day_of_year <= 244 ? 2 : 3;
}

double water_vapour(double latitude_deg, int day_of_year, LatitudeBands bands) {
  const bool south = latitude_deg < 0;
  const bool first_row = south && bands == LatitudeBands::southern_row_one;
  const int row = first_row ? 0 : std::min(8, static_cast<int>(std::abs(latitude_deg) / 10));
  const int turned = south && !first_row ? (season(day_of_year) + 2) % 4 : season(day_of_year);
  return kWaterVapour[row][turned];
}

/// Dew point in °F from °C and a share of saturation.
double dew_point_f(double ta_c, double humidity) {
  const double g = 17.27 * ta_c / (237.7 + ta_c) + std::log(humidity);
  const double dew_c = 237.7 * g / (17.27 - g);
  return dew_c * 9 / 5 + 32;
}

}  // namespace

SunPosition sun_at(const Site& site, io::CivilMinutes local, double extra_minutes) {
  const io::CivilTime t = io::civil_time(local);
  UtcTime utc{t.year,
              t.month,
              t.day,
              static_cast<double>(t.hour) - site.utc_offset_h,
              static_cast<double>(t.minute) + extra_minutes,
              0};
  Observer observer;
  observer.latitude_deg = site.latitude_deg;
  observer.longitude_deg = site.longitude_deg;
  observer.elevation_m = site.elevation_m;
  return sun_position(utc, observer);
}

double highest_altitude(const Site& site, io::CivilMinutes local) {
  const io::CivilMinutes day =
      local - ((local % io::kMinutesPerDay) + io::kMinutesPerDay) % io::kMinutesPerDay;
  double highest = -90;
  for (int64_t minute = 0; minute < io::kMinutesPerDay; minute += 15)
    highest = std::max(highest, sun_at(site, day + minute).altitude_deg);
  return highest;
}

double sunrise_hour(int day_of_year, double latitude_deg) {
  const double declination = -23.45 * std::cos(2 * kPi * (day_of_year + 10) / 365.0) * kRadian;
  const double course = std::clamp(std::tan(declination) * std::tan(latitude_deg * kRadian), -1.0, 1.0);
  const double day_length = 12 + 24 * std::asin(course) / kPi;
  return 12 - day_length / 2;
}

double sun_distance_factor(int day_of_year) {
  const double b = 2 * kPi * day_of_year / 365.0;
  return std::sqrt(1.00011 + 0.034221 * std::cos(b) + 0.00128 * std::sin(b) + 0.000719 * std::cos(2 * b) +
                   0.000077 * std::sin(2 * b));
}

ClearSky clear_sky(double zenith_deg, int day_of_year, double ta_c, double rh_percent, double pressure_hpa,
                   double latitude_deg, LatitudeBands bands) {
  ClearSky clear;
  if (zenith_deg >= 90) return clear;
  const double cosine = std::cos(zenith_deg * kRadian);
  const double pressure = std::isfinite(pressure_hpa) ? pressure_hpa : 1013;
  const double mass = 35 / std::sqrt(1224 * cosine * cosine + 1);
  const double g = water_vapour(latitude_deg, day_of_year, bands);
  const double dew = dew_point_f(ta_c, rh_percent / 100);
  const double vapour_cm = std::exp(0.1133 - std::log(g + 1) + 0.0393 * dew);
  const auto through = [&](double level, double m) {
    const double gases = 1.021 - 0.084 * std::sqrt(m * (0.000949 * pressure + 0.051));
    const double water = 1 - 0.077 * std::pow(vapour_cm * m, 0.3);
    const double aerosol = std::pow(0.935, m);
    return kSolarConstant * level * gases * water * sun_distance_factor(day_of_year) * aerosol;
  };
  clear.global = through(cosine, 35 * cosine / std::sqrt(1224 * cosine * cosine + 1));
  clear.beam = std::max(0.0, through(1, mass));
  clear.correction = 0.1473 * std::log(90 - zenith_deg) + 0.3454;
  return clear;
}

double clearness_index(double global, const ClearSky& clear) {
  const double index = global / clear.global + (1 - clear.correction);
  return std::isfinite(index) ? std::min(index, 1.0) : 1.0;
}

double clearness_ratio(double global, double zenith_deg, int day_of_year) {
  return global / (kSolarConstant * std::cos(zenith_deg * kRadian) * sun_distance_factor(day_of_year));
}

BeamAndSky split_global(double global, double altitude_deg, double kt, double ta_c, double rh_percent) {
  const double sine = std::sin(altitude_deg * kRadian), rh = rh_percent / 100;
  double share = 0;
  if (kt <= 0.3)
    share = 1 - 0.232 * kt + 0.0239 * sine - 0.000682 * ta_c + 0.0195 * rh;
  else if (kt < 0.78)
    share = 1.329 - 1.716 * kt + 0.267 * sine - 0.00357 * ta_c + 0.106 * rh;
  else
    share = 0.426 * kt - 0.256 * sine + 0.00349 * ta_c + 0.0734 * rh;
  BeamAndSky out;
  out.diffuse = global * share;
  out.direct = std::max(0.0, (global - out.diffuse) / sine);
  if (altitude_deg < 1 && out.direct > global) out.direct = global;
  out.diffuse = std::clamp(out.diffuse, 0.0, global);
  return out;
}

double sky_emissivity(double ta_c, double rh_percent) {
  const double vapour_hpa = 6.107 * std::pow(10, 7.5 * ta_c / (237.3 + ta_c)) * rh_percent / 100;
  const double w = 46.5 * vapour_hpa / (ta_c + 273.15);
  return 1 - (1 + w) * std::exp(-std::sqrt(1.2 + 3 * w));
}

}  // namespace lockstep::urban
