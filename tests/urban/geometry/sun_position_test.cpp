#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numbers>
#include <string>
#include <tuple>

#include "lockstep/error.hpp"
#include "lockstep/urban.hpp"
#include "urban/sun/grid_north.hpp"

namespace lockstep::urban {
namespace {

TEST(SunPosition, ExampleOfTheReport) {
  // NREL/TP-560-34302, table A5.1: zenith 50.11162, azimuth 194.34024.
  const Observer golden{39.742476, -105.1786, 1830.14, 820, 11, 67};
  const SunPosition sun = sun_position(parse_local_time("2003-10-17T12:30:30", -7), golden);
  EXPECT_NEAR(sun.zenith_deg, 50.11162, 1e-5);
  EXPECT_NEAR(sun.azimuth_deg, 194.34024, 1e-5);
  EXPECT_NEAR(sun.distance_au, 0.9965422974, 1e-9);
}

TEST(SunPosition, DefaultAirAndNoDeltaT) {
  const Observer observer{39.742476, -105.1786, 1830.14};
  const SunPosition sun = sun_position(parse_local_time("2003-10-17T12:30:30", -7), observer);
  EXPECT_NEAR(sun.zenith_deg, 50.11, 5e-3);
  EXPECT_NEAR(sun.azimuth_deg, 194.34, 5e-3);
}

struct Place {
  UtcTime time;
  Observer observer;
  double altitude_deg, geometric_deg, azimuth_deg;
};

TEST(SunPosition, AgreesWithAnotherImplementation) {
  const Place places[] = {
      {{2015, 6, 21, 12, 0, 0}, {57.7, 11.97, 10, 820, 11, 67}, 54.74692410, 54.73726142, 198.53780738},
      {{2015, 6, 21, 12, 0, 0}, {57.7, 11.97, 10, 1010, 10, 0}, 54.74906703, 54.73712332, 198.53906696},
      {{2024, 2, 29, 6, 30, 0}, {37.98, 23.73, 100, 820, 11, 67}, 16.60271686, 16.55782459, 114.25879143},
      {{2024, 2, 29, 6, 30, 0}, {37.98, 23.73, 100, 1010, 10, 0}, 16.61363350, 16.55814505, 114.25953163},
      {{1999, 12, 31, 23, 0, 0}, {-33.87, 151.21, 58, 820, 11, 67}, 49.72359382, 49.71201236, 86.45423168},
      {{1999, 12, 31, 23, 0, 0}, {-33.87, 151.21, 58, 1010, 10, 0}, 49.72706282, 49.71274781, 86.45378339},
      {{2050, 3, 20, 3, 0, 0}, {-77.85, 166.67, 20, 820, 11, 67}, 10.70974908, 10.64088772, 329.62215805},
      {{2050, 3, 20, 3, 0, 0}, {-77.85, 166.67, 20, 1010, 10, 0}, 10.72623234, 10.64111730, 329.62140902},
      {{1900, 1, 1, 12, 0, 0}, {0.0, 0.0, 0, 820, 11, 67}, 66.96455613, 66.95874695, 177.84039667},
      {{1900, 1, 1, 12, 0, 0}, {0.0, 0.0, 0, 1010, 10, 0}, 66.96589647, 66.95871596, 177.84241574}};
  for (const Place& place : places) {
    const SunPosition sun = sun_position(place.time, place.observer);
    EXPECT_NEAR(sun.geometric_altitude_deg, place.geometric_deg, 1e-6) << place.time.year;
    EXPECT_NEAR(sun.altitude_deg, place.altitude_deg, 1e-6) << place.time.year;
    EXPECT_NEAR(sun.azimuth_deg, place.azimuth_deg, 1e-6) << place.time.year;
    EXPECT_DOUBLE_EQ(sun.zenith_deg, 90 - sun.altitude_deg);
  }
}

TEST(SunPosition, NearTheHorizonAndBelow) {
  // pvlib's nrel_numpy of this place and air. Refraction ends where the sun's upper edge has set.
  struct Low {
    const char* time;
    double azimuth_deg, altitude_deg, geometric_deg;
  };
  for (const Low& low : {Low{"2015-06-21T19:17:32", 307.8104223816, 5.0005958763, 4.8352701900},
                         Low{"2015-06-21T20:09:27", 318.6012423327, 0.3009000207, -0.2144001473},
                         Low{"2015-06-21T20:12:42", 319.2899414830, 0.0618761426, -0.4995043919},
                         Low{"2015-06-21T20:30:37", 323.1165709890, -1.9987882064, -1.9987882064}}) {
    const SunPosition sun = sun_position(parse_local_time(low.time, 0), {57.7, 11.97});
    EXPECT_NEAR(sun.azimuth_deg, low.azimuth_deg, 1e-5) << low.time;
    EXPECT_NEAR(sun.geometric_altitude_deg, low.geometric_deg, 1e-5) << low.time;
    EXPECT_NEAR(sun.altitude_deg, low.altitude_deg, 1e-5) << low.time;
  }
}

TEST(SunPosition, OffsetsOfHalfAndQuarterHours) {
  for (const auto& [text, offset, hour] : {std::tuple{"2015-06-21T12:00+05:30", 5.5, 6.5},
                                           {"2015-06-21T12:00+05:45", 5.75, 6.25},
                                           {"2015-06-21T12:00-03:30", -3.5, 15.5},
                                           {"2015-06-21T12:00Z", 0.0, 12.0}}) {
    const UtcTime own = parse_local_time(text), both = parse_local_time(text, offset),
                  apart = parse_local_time(std::string(text).substr(0, 16), offset);
    for (const UtcTime& time : {own, both, apart})
      EXPECT_DOUBLE_EQ(time.hour + time.minute / 60, hour) << text;
    EXPECT_THROW(parse_local_time(text, offset + 1), InputError) << text;
  }
  EXPECT_THROW(parse_local_time("2015-06-21T12:00"), InputError) << "no offset at all";
  for (const char* text : {"2015-06-21T12:00+2", "2015-06-21T12:00+02", "2015-06-21T12:00+02:60",
                           "2015-06-21T12:00Z1", "2015-06-21T12:00+ 2:00", "2015-06-21T12:00+25:00"})
    EXPECT_THROW(parse_local_time(text), InputError) << text;
}

TEST(SunPosition, SecondSixtyAndTheYearsEndRunOver) {
  const Observer here{57.7, 11.97};
  const auto at = [&](const char* text) { return sun_position(parse_local_time(text), here); };
  for (const auto& [a, b] : {std::pair{"2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"},
                             {"2015-12-31T23:30-02:00", "2016-01-01T01:30Z"},
                             {"2016-01-01T00:30+02:00", "2015-12-31T22:30Z"},
                             {"2015-06-21T24:00Z", "2015-06-22T00:00Z"}}) {
    EXPECT_NEAR(at(a).azimuth_deg, at(b).azimuth_deg, 1e-6) << a;
    EXPECT_NEAR(at(a).altitude_deg, at(b).altitude_deg, 1e-6) << a;
  }
}

TEST(GridNorth, OfATransverseMercatorAndOfWebMercator) {
  // A sphere's closed forms: on the ellipsoid they hold to about a part in 300.
  constexpr double radius = 6371000, degree = std::numbers::pi / 180;
  const auto web_mercator = [&](double x, double y) {
    return urban::Place{x / radius / degree,
                        (2 * std::atan(std::exp(y / radius)) - std::numbers::pi / 2) / degree};
  };
  const double y60 = radius * std::log(std::tan(std::numbers::pi / 4 + 30 * degree));
  const GridNorth web = grid_north(web_mercator, 1e6, y60);
  EXPECT_NEAR(web.convergence_deg, 0, 1e-9);
  EXPECT_NEAR(web.scale(), 2, 0.01);
  const auto transverse = [&](double x, double y) {
    const double d = y / radius, e = x / radius;
    return urban::Place{std::atan(std::sinh(e) / std::cos(d)) / degree,
                        std::asin(std::sin(d) / std::cosh(e)) / degree};
  };
  // At longitude 3° and latitude 60° the convergence is atan(tan 3° sin 60°).
  const double e = std::atanh(std::cos(60 * degree) * std::sin(3 * degree));
  const double d = std::atan(std::tan(60 * degree) / std::cos(3 * degree));
  const GridNorth north = grid_north(transverse, radius * e, radius * d);
  EXPECT_NEAR(north.convergence_deg, std::atan(std::tan(3 * degree) * std::sin(60 * degree)) / degree, 0.02);
  EXPECT_NEAR(north.scale(), std::cosh(e), 0.01);
}

// Kilometres of a degree of latitude and of one of longitude on WGS84, as tables have them.
TEST(GridNorth, DegreesHaveTheirLengthOnTheEllipsoid) {
  struct Row {
    double latitude, along, across;
  };
  for (const Row& row : {Row{0, 110.574, 111.320},
                         {15, 110.649, 107.550},
                         {30, 110.852, 96.486},
                         {45, 111.132, 78.847},
                         {60, 111.412, 55.800},
                         {-75, 111.618, 28.902}}) {
    // A plane of metres around a place next to the 180th meridian.
    const auto plane = [&](double x, double y) {
      return urban::Place{std::remainder(179.9999 + x / (1000 * row.across), 360.0),
                          row.latitude + y / (1000 * row.along)};
    };
    const GridNorth found = grid_north(plane, 0, 0);
    EXPECT_NEAR(found.scale_north, 1, 1e-5) << row.latitude;
    EXPECT_NEAR(found.scale_east, 1, 2e-5) << row.latitude;
    EXPECT_NEAR(found.convergence_deg, 0, 1e-9) << row.latitude;
  }
}

TEST(SunPosition, TimesOutsideTheDayRunOver) {
  const Observer here{57.7, 11.97};
  const SunPosition a = sun_position({2015, 6, 21, 25.0, 0, 0}, here),
                    b = sun_position({2015, 6, 22, 1.0, 0, 0}, here);
  EXPECT_NEAR(a.azimuth_deg, b.azimuth_deg, 1e-7);
  EXPECT_NEAR(a.altitude_deg, b.altitude_deg, 1e-7);
}

TEST(SunPosition, LocalTimeIsAheadOfUniversalTime) {
  const UtcTime t = parse_local_time("2015-06-21T12:30:15", 2);
  EXPECT_EQ(t.year, 2015);
  EXPECT_EQ(t.month, 6);
  EXPECT_EQ(t.day, 21);
  EXPECT_DOUBLE_EQ(t.hour, 10);
  EXPECT_DOUBLE_EQ(t.minute, 30);
  EXPECT_DOUBLE_EQ(t.second, 15);
}

// Each date of two leap and two common years is a day after the one before it, and no other date is accepted.
TEST(SunPosition, TheCalendarIsTheSystems) {
  for (const int year : {1900, 2000, 2015, 2016})
    for (int month = 1; month <= 12; ++month)
      for (int day = 1; day <= 32; ++day) {
        SCOPED_TRACE(::testing::Message() << year << "-" << month << "-" << day);
        const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(unsigned(month)),
                                               std::chrono::day(unsigned(day))};
        if (date.ok())
          EXPECT_NO_THROW(sun_position({year, month, day}, {}));
        else
          EXPECT_THROW(sun_position({year, month, day}, {}), InputError);
      }
}

TEST(SunPosition, RefusesWhatIsNoTimeOrPlace) {
  for (const char* text :
       {"", "2015-06-21", "2015-06-21 12:00", "2015-06-21T12:00x", "2015-06-21T12:61", "yesterday"})
    EXPECT_THROW(parse_local_time(text, 0), InputError) << text;
  EXPECT_THROW(parse_local_time("2015-06-21T12:00", 30), InputError);
  EXPECT_THROW(sun_position({2015, 2, 29}, {}), InputError);
  EXPECT_THROW(sun_position({2015, 13, 1}, {}), InputError);
  EXPECT_THROW(sun_position({7000, 1, 1}, {}), InputError);
  EXPECT_THROW(sun_position({2015, 1, 1}, {91, 0}), InputError);
  EXPECT_NO_THROW(sun_position({2016, 2, 29}, {}));
}

}  // namespace
}  // namespace lockstep::urban
