// Solar Position Algorithm: I. Reda, A. Andreas, "Solar Position Algorithm for Solar Radiation Applications",
// NREL/TP-560-34302, revised 2008. Section numbers below are the report's.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "lockstep/error.hpp"
#include "lockstep/urban.hpp"
#include "urban/angles.hpp"
#include "urban/sun/spa_tables.hpp"

namespace lockstep::urban {
namespace {

constexpr double kDegree = 180 / kPi;

double wrap360(double degrees) {
  const double rest = std::fmod(degrees, 360.0);
  return rest < 0 ? rest + 360 : rest;
}

bool is_leap(int year, bool gregorian) {
  return year % 4 == 0 && (!gregorian || year % 100 != 0 || year % 400 == 0);
}

int days_in_month(int year, int month) {
  constexpr int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return days[month - 1] + (month == 2 && is_leap(year, year > 1582) ? 1 : 0);
}

void check(const UtcTime& t, const Observer& o) {
  if (t.year < -2000 || t.year > 6000)
    throw InputError(fmt::format("year {}", t.year), "sun position", "-2000 to 6000");
  if (t.month < 1 || t.month > 12 || t.day < 1 || t.day > days_in_month(t.year, t.month))
    throw InputError(fmt::format("date {}-{:02}-{:02}", t.year, t.month, t.day), "sun position",
                     "a day of the calendar");
  if (!(std::abs(o.latitude_deg) <= 90))
    throw InputError(fmt::format("latitude {}", o.latitude_deg), "sun position", "-90 to 90 degrees");
  if (!(std::abs(o.longitude_deg) <= 360))
    throw InputError(fmt::format("longitude {}", o.longitude_deg), "sun position", "-360 to 360 degrees");
}

/// 3.1: Julian day, in the Gregorian calendar from 15 October 1582 on.
double julian_day(const UtcTime& t) {
  const double day = t.day + (t.hour + (t.minute + t.second / 60) / 60) / 24;
  const int year = t.month > 2 ? t.year : t.year - 1;
  const int month = t.month > 2 ? t.month : t.month + 12;
  const double jd = std::floor(365.25 * (year + 4716)) + std::floor(30.6001 * (month + 1)) + day - 1524.5;
  if (jd <= 2299160.0) return jd;
  const double century = std::floor(year / 100.0);
  return jd + 2 - century + std::floor(century / 4);
}

/// 3.2: a power series in jme whose coefficients are sums of periodic terms.
template <class Terms>
double periodic(Terms terms, int powers, double jme) {
  double sum = 0, factor = 1;
  for (int power = 0; power < powers; ++power, factor *= jme) {
    double part = 0;
    for (const spa::Term& term : terms(power)) part += term.a * std::cos(term.b + term.c * jme);
    sum += part * factor;
  }
  return sum / 1e8;
}

struct Nutation {
  double longitude_deg, obliquity_deg;
};

/// 3.4: from the mean elongation and anomalies (degrees) at jce Julian ephemeris centuries.
Nutation nutation(double jce) {
  const double x[5] = {
      297.85036 + jce * (445267.111480 + jce * (-0.0019142 + jce / 189474)),
      357.52772 + jce * (35999.050340 + jce * (-0.0001603 - jce / 300000)),
      134.96298 + jce * (477198.867398 + jce * (0.0086972 + jce / 56250)),
      93.27191 + jce * (483202.017538 + jce * (-0.0036825 + jce / 327270)),
      125.04452 + jce * (-1934.136261 + jce * (0.0020708 + jce / 450000)),
  };
  Nutation sum{0, 0};
  for (const spa::NutationTerm& term : spa::nutation_terms()) {
    double angle = 0;
    for (int k = 0; k < 5; ++k) angle += x[k] * term.multiples[k];
    sum.longitude_deg += (term.a + term.b * jce) * std::sin(angle * kRadian);
    sum.obliquity_deg += (term.c + term.d * jce) * std::cos(angle * kRadian);
  }
  return {sum.longitude_deg / 36e6, sum.obliquity_deg / 36e6};
}

/// 3.5: mean obliquity of the ecliptic (arc seconds), u in units of 10000 Julian years.
double mean_obliquity_arcsec(double u) {
  constexpr double c[] = {84381.448, -4680.93, -1.55, 1999.25, -51.38, -249.67,
                          -39.05,    7.12,     27.87, 5.79,    2.45};
  double value = 0;
  for (int k = 10; k >= 0; --k) value = value * u + c[k];
  return value;
}

/// 3.14: refraction (degrees) at a geometric altitude; none once the sun's upper edge has set.
double refraction_deg(double altitude_deg, const Observer& o) {
  constexpr double sun_radius_and_horizon_refraction = 0.26667 + 0.5667;
  if (altitude_deg < -sun_radius_and_horizon_refraction) return 0;
  return o.pressure_mbar / 1010 * 283 / (273 + o.temperature_c) * 1.02 /
         (60 * std::tan((altitude_deg + 10.3 / (altitude_deg + 5.11)) * kRadian));
}

}  // namespace

SunPosition sun_position(const UtcTime& time, const Observer& observer) {
  check(time, observer);
  const double jd = julian_day(time);
  const double jde = jd + observer.delta_t_s / 86400;
  const double jc = (jd - 2451545) / 36525, jce = (jde - 2451545) / 36525, jme = jce / 10;

  const double heliocentric_longitude = wrap360(periodic(spa::longitude_terms, 6, jme) * kDegree);
  const double heliocentric_latitude = periodic(spa::latitude_terms, 2, jme) * kDegree;
  const double distance = periodic(spa::radius_terms, 5, jme);

  const double longitude = wrap360(heliocentric_longitude + 180);  // 3.3, geocentric
  const double beta = -heliocentric_latitude * kRadian;
  const Nutation shift = nutation(jce);
  const double epsilon = (mean_obliquity_arcsec(jme / 10) / 3600 + shift.obliquity_deg) * kRadian;
  const double aberration = -20.4898 / (3600 * distance);                          // 3.6
  const double lambda = (longitude + shift.longitude_deg + aberration) * kRadian;  // 3.7

  // 3.8: apparent sidereal time at Greenwich.
  const double mean_sidereal =
      wrap360(280.46061837 + 360.98564736629 * (jd - 2451545) + jc * jc * (0.000387933 - jc / 38710000));
  const double sidereal = mean_sidereal + shift.longitude_deg * std::cos(epsilon);

  // 3.9, 3.10: geocentric right ascension and declination.
  const double right_ascension =
      wrap360(kDegree * std::atan2(std::sin(lambda) * std::cos(epsilon) - std::tan(beta) * std::sin(epsilon),
                                   std::cos(lambda)));
  const double declination =
      std::asin(std::sin(beta) * std::cos(epsilon) + std::cos(beta) * std::sin(epsilon) * std::sin(lambda));

  const double hour_angle = wrap360(sidereal + observer.longitude_deg - right_ascension) * kRadian;  // 3.11

  // 3.12: parallax, from the observer's place on the ellipsoid.
  const double parallax = 8.794 / (3600 * distance) * kRadian;
  const double phi = observer.latitude_deg * kRadian;
  const double u = std::atan(0.99664719 * std::tan(phi));
  const double x = std::cos(u) + observer.elevation_m / 6378140 * std::cos(phi);
  const double y = 0.99664719 * std::sin(u) + observer.elevation_m / 6378140 * std::sin(phi);
  const double ascension_shift =
      std::atan2(-x * std::sin(parallax) * std::sin(hour_angle),
                 std::cos(declination) - x * std::sin(parallax) * std::cos(hour_angle));
  const double topocentric_declination =
      std::atan2((std::sin(declination) - y * std::sin(parallax)) * std::cos(ascension_shift),
                 std::cos(declination) - x * std::sin(parallax) * std::cos(hour_angle));
  const double h = hour_angle - ascension_shift;  // 3.13

  SunPosition sun;
  sun.geometric_altitude_deg =
      kDegree * std::asin(std::sin(phi) * std::sin(topocentric_declination) +
                          std::cos(phi) * std::cos(topocentric_declination) * std::cos(h));
  sun.altitude_deg = sun.geometric_altitude_deg + refraction_deg(sun.geometric_altitude_deg, observer);
  sun.zenith_deg = 90 - sun.altitude_deg;
  sun.azimuth_deg =
      wrap360(180 + kDegree * std::atan2(std::sin(h), std::cos(h) * std::sin(phi) -
                                                          std::tan(topocentric_declination) * std::cos(phi)));
  sun.distance_au = distance;
  return sun;
}

namespace {

/// The offset that ends a time, "Z" or "+05:45", is cut off; none: nothing.
std::optional<double> take_offset(std::string& text) {
  if (text.ends_with('Z')) {
    text.pop_back();
    return 0;
  }
  const size_t sign = text.find_first_of("+-", std::min(text.size(), text.find('T')));
  if (sign == text.npos) return {};
  int hours = 0, minutes = 0, used = 0;
  const std::string offset = text.substr(sign + 1);
  const bool read = std::sscanf(offset.c_str(), "%2d:%2d%n", &hours, &minutes, &used) == 2 && used == 5 &&
                    offset.size() == 5 && std::isdigit(static_cast<unsigned char>(offset[0])) &&
                    std::isdigit(static_cast<unsigned char>(offset[3]));
  if (!read || hours > 24 || minutes > 59)
    throw InputError(fmt::format("offset '{}'", text.substr(sign)), "time", "Z, or such as +02:00");
  const double value = hours + minutes / 60.0;
  const bool west = text[sign] == '-';
  text.resize(sign);
  return west ? -value : value;
}

}  // namespace

UtcTime parse_local_time(std::string_view text, std::optional<double> utc_offset_h) {
  UtcTime time;
  int hour = 0, minute = 0, used = 0;
  std::string copy(text);
  const std::optional<double> own = take_offset(copy);
  if (own && utc_offset_h && std::abs(*own - *utc_offset_h) > 1e-9)
    throw InputError(fmt::format("offset {} in addition to that of '{}'", *utc_offset_h, text), "time",
                     "one offset from universal time");
  const std::optional<double> offset = own ? own : utc_offset_h;
  const bool read = std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d%n", &time.year, &time.month, &time.day,
                                &hour, &minute, &used) == 5;
  const char* rest = copy.c_str() + used;
  int second = 0, more = 0;
  const bool whole =
      read && (*rest == '\0' || (std::sscanf(rest, ":%2d%n", &second, &more) == 1 && rest[more] == '\0'));
  if (!whole || hour < 0 || hour > 24 || minute < 0 || minute > 59 || second < 0 || second > 60)
    throw InputError(fmt::format("time '{}'", text), "time",
                     "YYYY-MM-DDTHH:MM or YYYY-MM-DDTHH:MM:SS, then perhaps its offset, Z or +02:00");
  if (!offset)
    throw InputError("a local time without its offset", "time", "one from universal time, such as +02:00");
  if (!(std::abs(*offset) <= 24))
    throw InputError(fmt::format("offset {}", *offset), "utc offset", "hours between -24 and 24");
  time.hour = hour - *offset;
  time.minute = minute;
  time.second = second;
  return time;
}

}  // namespace lockstep::urban
