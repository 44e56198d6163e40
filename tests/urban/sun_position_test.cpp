#include <gtest/gtest.h>

#include "lockstep/error.hpp"
#include "lockstep/urban.hpp"

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
