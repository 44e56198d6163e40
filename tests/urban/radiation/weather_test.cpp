// Forcing of the radiation model: each formula against published numbers or a second formulation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "lockstep/error.hpp"
#include "urban/weather/forcing.hpp"

namespace lockstep::urban {
namespace {

using io::CivilMinutes;
using io::Weather;

constexpr double kRad = std::numbers::pi / 180;
const Site kGothenburg{57.7, 11.97, 0, 1};

CivilMinutes time_of(int month, int day, int hour, int minute = 0) {
  return io::civil_minutes({2015, month, day, hour, minute});
}

/// A table of one kind of weather, a row every step.
io::WeatherTable table(CivilMinutes first, int rows, int64_t step_min,
                       const std::function<double(CivilMinutes)>& global) {
  io::WeatherTable t;
  t.where = "w";
  t.step_min = step_min;
  for (int k = 0; k < rows; ++k) {
    io::WeatherRow row;
    row.time = first + k * step_min;
    row.line = k + 2;
    row[Weather::air_temperature] = 15 + k % 3;
    row[Weather::relative_humidity] = 60;
    row[Weather::wind_speed] = 2;
    row[Weather::global] = global(row.time);
    t.rows.push_back(row);
  }
  return t;
}
std::vector<WeatherStep> forcing(const io::WeatherTable& t, const Site& site,
                                 Preset preset = Preset::corrected) {
  Constants constants;
  if (preset == Preset::umep) constants.night_clearness = NightClearness::sunrise;
  return make_forcing(t, t, site, 0, weather_rules(preset, constants));
}
io::WeatherTable day_of(CivilMinutes midnight, const Site& site, int64_t step_min = 60) {
  return table(midnight + step_min, static_cast<int>(1440 / step_min), step_min, [&](CivilMinutes t) {
    const double altitude = sun_of_interval(site, t, step_min).altitude_deg;
    return altitude > 0 ? 900 * std::sin(altitude * kRad) : 0;
  });
}

TEST(Weather, SunriseByTheHourAngle) {
  for (const int doy : {1, 80, 172, 266, 355})
    for (const double latitude : {-45.0, 0.0, 38.0, 57.7}) {
      const double declination = -23.45 * kRad * std::cos(2 * std::numbers::pi * (doy + 10) / 365);
      const double half_day_h = std::acos(-std::tan(declination) * std::tan(latitude * kRad)) / kRad / 15;
      EXPECT_NEAR(sunrise_hour(doy, latitude), 12 - half_day_h, 1e-9) << doy << " " << latitude;
    }
  EXPECT_DOUBLE_EQ(sunrise_hour(172, 80), 0) << "polar day";
  EXPECT_DOUBLE_EQ(sunrise_hour(355, 80), 12) << "polar night";
}

TEST(Weather, DistanceOfTheSun) {
  for (const auto& [month, day] : {std::pair{1, 3}, {4, 4}, {7, 4}, {10, 5}}) {
    UtcTime noon{2015, month, day, 12};
    const double expected = 1 / sun_position(noon, {}).distance_au;
    EXPECT_NEAR(sun_distance_factor(io::day_of_year(time_of(month, day, 12))), expected, 1e-3);
  }
}

// The chain of Crawford & Duchon once more, in °C, from the vapour pressure.
double clear_sky_again(double altitude, double ta, double rh, double pressure, double g, double distance) {
  const double s = std::sin(altitude * kRad), m = 35 * s / std::sqrt(1224 * s * s + 1);
  const double vapour = std::exp(17.27 * ta / (237.7 + ta)) * rh / 100, ln = std::log(vapour);
  const double dew_f = 1.8 * (237.7 * ln / (17.27 - ln)) + 32;
  const double u = std::exp(0.1133 + 0.0393 * dew_f) / (g + 1);
  const double transmitted = (1.021 - 0.084 * std::sqrt(m * (949e-6 * pressure + 0.051))) *
                             (1 - 0.077 * std::exp(0.3 * std::log(u * m))) * std::exp(m * std::log(0.935));
  return 1370 * s * distance * transmitted;
}

TEST(Weather, ClearSky) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto global = [&](double altitude, int doy, double latitude, LatitudeBands bands, double pressure) {
    return clear_sky(90 - altitude, doy, 20, 50, pressure, latitude, bands).global;
  };
  const auto again = [&](double altitude, int doy, double pressure, double g) {
    return clear_sky_again(altitude, 20, 50, pressure, g, sun_distance_factor(doy));
  };
  using enum LatitudeBands;
  EXPECT_NEAR(global(60, 172, 57.7, by_latitude, 1013), again(60, 172, 1013, 2.67), 1e-9);
  EXPECT_NEAR(global(60, 172, 57.7, by_latitude, nan), again(60, 172, 1013, 2.67), 1e-9);
  EXPECT_NEAR(global(20, 355, 38, by_latitude, 950), again(20, 355, 950, 3.04), 1e-9);
  // The south: |latitude| with the seasons reversed, or the first row at any latitude.
  EXPECT_NEAR(global(70, 355, -38, by_latitude, 1013), again(70, 355, 1013, 2.92), 1e-9);
  EXPECT_NEAR(global(70, 355, -38, southern_row_one, 1013), again(70, 355, 1013, 3.37), 1e-9);
  EXPECT_EQ(global(-1, 172, 50, by_latitude, 1013), 0);
  // A cloudless noon of a mid-latitude summer has 850 to 1000 W/m².
  EXPECT_GT(global(65, 172, 45, by_latitude, 1013), 850);
  EXPECT_LT(global(65, 172, 45, by_latitude, 1013), 1000);
  const ClearSky clear = clear_sky(30, 172, 20, 50, 1013, 45, by_latitude);
  EXPECT_NEAR(clearness_index(0.5 * clear.global, clear), 0.5 + 1 - (0.1473 * std::log(60.0) + 0.3454),
              1e-12);
  EXPECT_EQ(clearness_index(2 * clear.global, clear), 1);
  EXPECT_EQ(clearness_index(0, ClearSky{}), 1);
}

TEST(Weather, ReindlsPartsByHand) {
  // Kt 0.2, sun 30° high, 20 °C, 50 %: 1 - 0.0464 + 0.01195 - 0.01364 + 0.00975.
  const BeamAndSky cloudy = split_global(200, 30, 0.2, 20, 50);
  EXPECT_NEAR(cloudy.diffuse, 200 * 0.96166, 1e-9);
  EXPECT_NEAR(cloudy.direct * 0.5 + cloudy.diffuse, 200, 1e-9);
  // Kt 0.5: 1.329 - 0.858 + 0.1335 - 0.0714 + 0.053 = 0.5861.
  EXPECT_NEAR(split_global(400, 30, 0.5, 20, 50).diffuse, 400 * 0.5861, 1e-9);
  // Kt 0.8: 0.3408 - 0.128 + 0.0698 + 0.0367 = 0.3193.
  EXPECT_NEAR(split_global(700, 30, 0.8, 20, 50).diffuse, 700 * 0.3193, 1e-9);
  EXPECT_EQ(split_global(50, 0.5, 0.9, 20, 50).direct, 50) << "low suns: no more than the global";
  EXPECT_LE(split_global(10, 10, 0.01, -30, 100).diffuse, 10);
}

TEST(Weather, SkyEmissivityByHand) {
  // 20 °C, 50 %: vapour 11.69 hPa, w = 1.8544, 1 - 2.8544 exp(-sqrt(6.7632)).
  EXPECT_NEAR(sky_emissivity(20, 50), 0.7881, 1e-4);
  EXPECT_GT(sky_emissivity(20, 90), sky_emissivity(20, 30));
}

TEST(Weather, StepsOfADay) {
  for (const int64_t step : {60, 30, 10}) {
    const io::WeatherTable t = day_of(time_of(6, 21, 0), kGothenburg, step);
    const auto steps = forcing(t, kGothenburg);
    ASSERT_EQ(steps.size(), static_cast<size_t>(1440 / step));
    double highest = 0, noon = 0;
    for (const WeatherStep& s : steps) {
      const StepForcing& f = s.forcing;
      EXPECT_EQ(f.day_of_year, 172);
      EXPECT_NEAR(f.step_days * 1440, static_cast<double>(step), 1e-9);
      EXPECT_LE(f.sun_altitude_deg, f.day_max_altitude_deg + 0.02);
      if (f.sun_altitude_deg > highest) highest = f.sun_altitude_deg, noon = f.day_fraction * 24;
      if (!f.day()) { EXPECT_EQ(f.beam_w_m2 + f.diffuse_w_m2 + f.global_w_m2, 0); }
    }
    EXPECT_NEAR(highest, 90 - 57.7 + 23.44, 0.5);
    EXPECT_NEAR(noon, 12, static_cast<double>(step) / 60) << "true solar time, whatever the zone";
  }
}

TEST(Weather, HalfHourZonesMoveTheClockAlone) {
  const Site india{28.6, 77.2, 0, 5.5}, utc{28.6, 77.2, 0, 0};
  const auto local = forcing(day_of(time_of(3, 21, 0), india), india);
  const auto universal = forcing(day_of(time_of(3, 20, 18, 30), utc), utc);
  for (size_t k = 0; k < local.size(); ++k) {
    EXPECT_NEAR(local[k].forcing.sun_altitude_deg, universal[k].forcing.sun_altitude_deg, 1e-9);
    EXPECT_NEAR(local[k].forcing.day_fraction, universal[k].forcing.day_fraction, 1e-9);
  }
}

TEST(Weather, PolarNightAndPolarDay) {
  const Site svalbard{78.2, 15.6, 0, 1};
  for (const WeatherStep& s : forcing(day_of(time_of(12, 21, 0), svalbard), svalbard)) {
    EXPECT_FALSE(s.forcing.day());
    EXPECT_LT(s.forcing.day_max_altitude_deg, 0);
    EXPECT_EQ(s.forcing.clearness, 1);
  }
  for (const WeatherStep& s : forcing(day_of(time_of(6, 21, 0), svalbard), svalbard)) {
    EXPECT_TRUE(s.forcing.day());
    EXPECT_DOUBLE_EQ(s.forcing.sunrise_h, 0);
    EXPECT_TRUE(std::isfinite(s.forcing.clearness));
  }
}

TEST(Weather, TheSouthHasTheSunInTheNorth) {
  const Site cape_town{-33.9, 18.4, 0, 2};
  const auto steps = forcing(day_of(time_of(12, 21, 0), cape_town), cape_town);
  double highest = 0, azimuth = 0;
  for (const WeatherStep& s : steps)
    if (s.forcing.sun_altitude_deg > highest)
      highest = s.forcing.sun_altitude_deg, azimuth = s.forcing.sun_azimuth_deg;
  EXPECT_GT(highest, 75);
  EXPECT_LT(std::abs(std::remainder(azimuth, 360.0)), 60);
}

TEST(Weather, ClearnessAtNight) {
  const Site site = kGothenburg;
  io::WeatherTable t = day_of(time_of(3, 21, 0), site);
  for (io::WeatherRow& row : t.rows) row[Weather::global] *= row.time < time_of(3, 21, 12) ? 0.4 : 0.8;
  const auto carried = forcing(t, site), published = forcing(t, site, Preset::umep);
  size_t first_day = 0, last_day = 0;
  for (size_t k = 0; k < t.rows.size(); ++k)
    if (carried[k].forcing.day()) last_day = k, first_day = first_day ? first_day : k;
  EXPECT_EQ(carried.front().forcing.clearness, 1);
  EXPECT_EQ(carried.back().forcing.clearness, carried[last_day].forcing.clearness);
  EXPECT_LT(published.front().forcing.clearness, 1);
  size_t risen = first_day;
  while (published[risen].forcing.sun_altitude_deg <= 1) ++risen;
  EXPECT_EQ(published.front().forcing.clearness, published[risen + 1].forcing.clearness);
}

TEST(Weather, RadiationAtNightIsRefused) {
  io::WeatherTable t = day_of(time_of(3, 21, 0), kGothenburg);
  t.rows[1][Weather::global] = 200;
  try {
    forcing(t, kGothenburg);
    FAIL() << "200 W/m² at two in the morning";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("[w:3]"), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find("urban::SeriesOptions::utc_offset_h"), std::string::npos);
  }
  // A clock that is off by twelve hours is noticed.
  Site wrong = kGothenburg;
  wrong.utc_offset_h = 13;
  EXPECT_THROW(forcing(day_of(time_of(3, 21, 0), kGothenburg), wrong), InputError);
}

TEST(Weather, PartsThatAreMeasuredAreTaken) {
  io::WeatherTable t = day_of(time_of(6, 21, 0), kGothenburg);
  for (io::WeatherRow& row : t.rows) row[Weather::diffuse] = 40;
  auto steps = forcing(t, kGothenburg);
  const StepForcing noon = steps[11].forcing;
  EXPECT_EQ(noon.diffuse_w_m2, 40);
  EXPECT_NEAR(noon.beam_w_m2 * std::sin(noon.sun_altitude_deg * kRad) + 40, noon.global_w_m2, 1e-9);
  for (io::WeatherRow& row : t.rows) row[Weather::direct] = 500;
  EXPECT_EQ(forcing(t, kGothenburg)[11].forcing.beam_w_m2, 500);
}

TEST(Weather, TheBeamOfALowSunIsBelowTheClearSkys) {
  // Global radiation of 0.8 of that above the atmosphere, too much where the sun is low.
  const auto bright = [](CivilMinutes t) {
    const double sine = std::sin(sun_of_interval(kGothenburg, t, 10).altitude_deg * kRad);
    return sine > 0 ? 1100 * sine : 0;
  };
  const io::WeatherTable t = table(time_of(6, 21, 0, 10), 144, 10, bright);
  const auto excess = [&](Preset preset) {
    double most = 0;
    for (const WeatherStep& step : forcing(t, kGothenburg, preset)) {
      const StepForcing& f = step.forcing;
      if (f.sun_altitude_deg < 2) continue;
      const double sine = std::sin(f.sun_altitude_deg * kRad);
      EXPECT_NEAR(f.beam_w_m2 * sine + f.diffuse_w_m2, f.global_w_m2, 1e-9);
      // A clear sky's beam of A. Meinel & M. Meinel (1976), of the air mass of F. Kasten & A. Young (1989).
      const double mass = 1 / (sine + 0.50572 * std::pow(f.sun_altitude_deg + 6.07995, -1.6364));
      most = std::max(most, f.beam_w_m2 / (1353 * std::pow(0.7, std::pow(mass, 0.678))));
    }
    return most;
  };
  EXPECT_LE(excess(Preset::corrected), 1.8);
  EXPECT_GT(excess(Preset::umep), 4);
}

TEST(Weather, PartsOfAnIntervalKeepItsMeans) {
  for (const bool measured : {false, true}) {
    io::WeatherTable t = day_of(time_of(6, 21, 0), kGothenburg);
    for (io::WeatherRow& row : t.rows) {
      row[Weather::global] *= 0.6;
      if (measured)
        row[Weather::direct] = 0.5 * row[Weather::global], row[Weather::diffuse] = 0.4 * row[Weather::global];
    }
    WeatherRules rules = weather_rules(Preset::corrected, {});
    rules.substeps = 6;
    int lit = 0;
    for (const WeatherStep& step : make_forcing(t, t, kGothenburg, 0, rules)) {
      const io::WeatherRow& row = t.rows[static_cast<size_t>((step.time - t.rows[0].time) / 60)];
      if (step.substeps.empty()) {
        EXPECT_FALSE(step.forcing.day());
        continue;
      }
      ASSERT_EQ(step.substeps.size(), 6u);
      double global = 0, direct = 0, diffuse = 0, days = 0;
      for (size_t k = 0; k < 6; ++k) {
        const StepForcing& f = step.substeps[k];
        const SunPosition sun = sun_at(kGothenburg, step.time, -55 + 10.0 * static_cast<double>(k));
        if (sun.altitude_deg > 1) { EXPECT_NEAR(f.sun_altitude_deg, sun.altitude_deg, 1e-9); }
        EXPECT_NEAR(f.sun_azimuth_deg, sun.azimuth_deg, 1e-9);
        EXPECT_EQ(f.clearness, step.forcing.clearness);
        if (!f.day()) { EXPECT_EQ(f.global_w_m2, 0); }
        if (!measured && f.day()) {
          EXPECT_NEAR(f.beam_w_m2 * std::sin(f.sun_altitude_deg * kRad) + f.diffuse_w_m2, f.global_w_m2,
                      1e-9);
        }
        global += f.global_w_m2 / 6;
        direct += f.beam_w_m2 / 6;
        diffuse += f.diffuse_w_m2 / 6;
        days += f.step_days;
      }
      EXPECT_NEAR(global, row[Weather::global], 1e-9);
      EXPECT_NEAR(days, 1 / 24.0, 1e-12);
      if (measured) {
        EXPECT_NEAR(direct, row[Weather::direct], 1e-9);
        EXPECT_NEAR(diffuse, row[Weather::diffuse], 1e-9);
      }
      ++lit;
    }
    EXPECT_GE(lit, 17);
  }
}

// 1361 W/m² at the top of the atmosphere: G. Kopp & J. Lean (2011).
TEST(Weather, ABeamOnTheHorizontalIsNoMoreThanTheSunSends) {
  io::WeatherTable t = table(time_of(6, 21, 0, 10), 144, 10, [](CivilMinutes time) {
    return sun_of_interval(kGothenburg, time, 10).altitude_deg > 0 ? 150.0 : 0.0;
  });
  for (io::WeatherRow& row : t.rows) row[Weather::direct] = row[Weather::global] > 0 ? 100 : 0;
  WeatherRules rules = weather_rules(Preset::corrected, {});
  rules.horizontal_direct = true;
  int low = 0, high = 0;
  for (const WeatherStep& step : make_forcing(t, t, kGothenburg, 0, rules)) {
    const StepForcing& f = step.forcing;
    if (!f.day()) continue;
    const double facing = 100 / std::sin(f.sun_altitude_deg * kRad);
    EXPECT_DOUBLE_EQ(f.beam_w_m2, std::min(facing, 1361.0)) << f.sun_altitude_deg;
    ++(facing > 1361 ? low : high);
  }
  EXPECT_GT(low, 5);
  EXPECT_GT(high, 60);
}

TEST(Weather, HorizontalDirectRadiationKeepsItsMeanInParts) {
  io::WeatherTable t = day_of(time_of(6, 21, 0), kGothenburg);
  for (io::WeatherRow& row : t.rows) row[Weather::direct] = 0.4 * row[Weather::global];
  WeatherRules rules = weather_rules(Preset::corrected, {});
  rules.substeps = 6;
  rules.horizontal_direct = true;
  for (const WeatherStep& step : make_forcing(t, t, kGothenburg, 0, rules)) {
    double level = 0;
    for (const StepForcing& f : step.substeps)
      if (f.day()) level += f.beam_w_m2 * std::sin(f.sun_altitude_deg * kRad) / 6;
    const io::WeatherRow& row = t.rows[static_cast<size_t>((step.time - t.rows[0].time) / 60)];
    if (!step.substeps.empty()) { EXPECT_NEAR(level, row[Weather::direct], 1e-9); }
  }
}

TEST(Weather, StepsBeforeARunAreThoseItsFirstHoursRemember) {
  const io::WeatherTable two = [] {
    io::WeatherTable t = day_of(time_of(6, 20, 0), kGothenburg),
                     next = day_of(time_of(6, 21, 0), kGothenburg);
    t.rows.insert(t.rows.end(), next.rows.begin(), next.rows.end());
    return t;
  }();
  const WeatherRules rules = weather_rules(Preset::corrected, {});
  const auto all = make_forcing(two, two, kGothenburg, 0, rules);
  for (size_t first = 0; first < two.rows.size(); ++first) {
    io::WeatherTable part = two;
    part.rows.erase(part.rows.begin(), part.rows.begin() + static_cast<ptrdiff_t>(first));
    const WeatherSeries series = make_series(part, two, kGothenburg, 0, rules);
    ASSERT_EQ(series.steps.size(), all.size() - first);
    EXPECT_EQ(series.steps.front().forcing.clearness, all[first].forcing.clearness) << first;
    // Back to the night.
    size_t lit = 0;
    while (lit < first && all[first - lit - 1].forcing.day()) ++lit;
    EXPECT_EQ(series.warm_up.size(), lit) << first;
  }
  // A row that cannot be used ends them silently.
  io::WeatherTable broken = two;
  broken.rows[33][Weather::global] = std::numeric_limits<double>::quiet_NaN();
  io::WeatherTable part = two;
  part.rows.erase(part.rows.begin(), part.rows.begin() + 36);
  EXPECT_EQ(make_series(part, broken, kGothenburg, 0, rules).warm_up.size(), 2u);
}

TEST(Weather, LeavesAndTheMeanOfTheDay) {
  WeatherRules rules;
  EXPECT_FALSE(has_leaves(97, rules));
  EXPECT_TRUE(has_leaves(98, rules));
  EXPECT_FALSE(has_leaves(300, rules));
  std::swap(rules.leaf_first_day, rules.leaf_last_day);
  EXPECT_TRUE(has_leaves(10, rules)) << "leaves over the turn of the year";
  EXPECT_FALSE(has_leaves(200, rules));
  const io::WeatherTable day = day_of(time_of(6, 21, 0), kGothenburg);
  const auto steps = forcing(day, kGothenburg);
  double sum = 0, count = 0;  // the file's rows within 12 hours of 05:30
  for (const io::WeatherRow& row : day.rows)
    if (row.time <= time_of(6, 21, 0) + 17 * 60 + 30) sum += row[Weather::air_temperature], ++count;
  EXPECT_EQ(count, 17);
  EXPECT_NEAR(steps[5].forcing.water_c, sum / count, 1e-9);
  EXPECT_EQ(steps[5].forcing.canopy_transmissivity, 0.03);
  EXPECT_EQ(forcing(day_of(time_of(1, 21, 0), kGothenburg), kGothenburg)[5].forcing.canopy_transmissivity,
            0.5);
}

}  // namespace
}  // namespace lockstep::urban
