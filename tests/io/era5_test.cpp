// ERA5's NetCDF files as the old and the new Climate Data Store give them.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/refusal.hpp"
#include "core/temporary_folder.hpp"
#include "io/era5_files.hpp"
#include "io/series/weather/weather.hpp"

namespace lockstep::io {
namespace {

/// The values of the place, in the units of weather. `tolerance`: a share, of what the file's numbers resolve.
void expect_weather(const WeatherTable& table, double lat, double lon, double tolerance,
                    double utc_offset_h = 0) {
  ASSERT_EQ(table.rows.size(), kTimes);
  EXPECT_TRUE(table.horizontal_direct);
  EXPECT_EQ(table.utc_offset_h, utc_offset_h);
  EXPECT_EQ(civil_text(table.rows[0].time), utc_offset_h == 0 ? "2021-05-19T00:00" : "2021-05-19T02:00");
  for (size_t k = 0; k < kTimes; ++k) {
    const auto value = [&](const char* name) { return era5_value(name, k, lat, lon); };
    const auto expect = [&](Weather quantity, double expected) {
      EXPECT_NEAR(table.rows[k][quantity], expected, tolerance * std::abs(expected))
          << name(quantity) << " " << k;
    };
    expect(Weather::air_temperature, value("t2m") - 273.15);
    // August, Roche and Magnus, with the constants of Alduchov and Eskridge (1996): another fit of the same curve.
    const auto magnus = [](double c) { return 6.1094 * std::exp(17.625 * c / (c + 243.04)); };
    EXPECT_NEAR(table.rows[k][Weather::relative_humidity],
                100 * magnus(value("d2m") - 273.15) / magnus(value("t2m") - 273.15), 0.5);
    expect(Weather::wind_speed, std::sqrt(value("u10") * value("u10") + value("v10") * value("v10")));
    expect(Weather::global, value("ssrd") / 3600);
    expect(Weather::direct, value("fdir") / 3600);
    expect(Weather::longwave_down, value("strd") / 3600);
    expect(Weather::pressure, value("sp") / 100);
    // The wind blows to the west and north: it comes from the south-east.
    EXPECT_GT(table.rows[k][Weather::wind_direction], 90);
    EXPECT_LT(table.rows[k][Weather::wind_direction], 180);
    EXPECT_NEAR(std::tan(table.rows[k][Weather::wind_direction] * 0.017453292519943295),
                value("u10") / value("v10"), 0.01);
  }
}

class Era5 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!netcdf_missing().empty()) GTEST_SKIP() << netcdf_missing();
  }
  test::TemporaryFolder folder;
};

TEST_F(Era5, OfTheOldStore) {
  write_old(folder / "era5.nc");
  expect_weather(read_era5(folder / "era5.nc", {48.25, -12, false, 0}), 48.25, -12, 3e-4);
  expect_weather(read_era5(folder / "era5.nc", {48.11, 347.9, true, 0}), 48.0, -12, 3e-4);
  expect_weather(read_era5(folder / "era5.nc", {48.11, 347.9, false, 0}), 48.11, -12.1, 3e-4);
}

TEST_F(Era5, OfTheNewStoreInTwoFiles) {
  write_new(folder / "data_stream-oper_stepType-instant.nc", kInstant);
  write_new(folder / "data_stream-oper_stepType-accum.nc", kAccumulated);
  for (const char* file : {"data_stream-oper_stepType-instant.nc", "data_stream-oper_stepType-accum.nc"}) {
    expect_weather(read_era5(folder / file, {48.375, -11.875, false, 2}), 48.375, -11.875, 1e-5, 2);
    expect_weather(read_era5(folder / file, {48.3, 348.1, true, 0}), 48.25, -12, 1e-5);
  }
}

TEST_F(Era5, IsRefusedByWhatItLacks) {
  const auto refusal_of = [&](const WeatherPlace& place) {
    return test::refusal([&] { read_era5(folder / "era5.nc", place); });
  };
  write_new(folder / "era5.nc", kInstant);
  EXPECT_NE(refusal_of({48.25, -12, false, 0}).find("no variable ssrd"), std::string::npos);
  EXPECT_NE(refusal_of({50, -12, false, 0}).find("latitudes from 48.5 to 48"), std::string::npos);
  EXPECT_NE(refusal_of({48.25, 10, true, 0}).find("longitudes from -12.25 to -11.75"), std::string::npos);
  write_netcdf(folder / "era5.nc", {{"t2m", {"time"}, Array::of(std::vector<double>{1, 2}, {2}), {}}}, {});
  EXPECT_NE(refusal_of({48.25, -12, false, 0}).find("no axes"), std::string::npos);
}

// ERA5-Land adds up from midnight: the sum of a day is in its last hour, which ends at 00:00 of the next.
TEST_F(Era5, OfSumsFromMidnightIsRefused) {
  const auto hourly = [](int hour) { return std::max(0.0, 1e6 * std::sin((hour % 24 - 5) * 0.21)); };
  write_day(folder / "era5.nc", hourly);
  EXPECT_EQ(read_era5(folder / "era5.nc", {48, 11, false, 0}).rows.size(), 25u);
  write_day(folder / "land.nc", [&](int hour) {
    double sum = 0;
    for (int h = 1; h <= (hour % 24 == 0 ? 24 : hour); ++h) sum += hourly(h);
    return sum;
  });
  const std::string text = test::refusal([&] { read_era5(folder / "land.nc", {48, 11, false, 0}); });
  EXPECT_NE(text.find("accumulated over the day, as in ERA5-Land"), std::string::npos) << text;
  write_day(folder / "night.nc", [](int) { return 0; });
  EXPECT_EQ(read_era5(folder / "night.nc", {48, 11, false, 0}).rows.size(), 25u);
}

TEST_F(Era5, OfAnEpochWithAnOffsetIsInUniversalTime) {
  write_day(folder / "era5.nc", [](int) { return 0; }, 48, 11, "seconds since 1970-01-01 00:00:00 +02:00");
  EXPECT_EQ(civil_text(read_era5(folder / "era5.nc", {48, 11, false, 0}).rows[0].time), "2021-05-18T22:00");
}

// Temperatures in K on the equator for an hour: 280 at the first longitude, 281 at the next and so on.
void write_equator(const std::filesystem::path& path, const std::vector<double>& longitudes) {
  const auto n = int64_t(longitudes.size());
  std::vector<NetcdfVariable> variables = {
      {"valid_time",
       {"valid_time"},
       Array::of(std::vector<double>{1621382400}, {1}),
       {{"units", "seconds since 1970-01-01"}}},
      {"latitude", {"latitude"}, Array::of(std::vector<double>{0}, {1}), {}},
      {"longitude", {"longitude"}, Array::of(longitudes, {n}), {}}};
  for (const char* name : {"u10", "v10", "t2m", "d2m", "ssrd"}) {
    std::vector<double> values(longitudes.size(), 270);
    if (name == std::string("t2m")) std::iota(values.begin(), values.end(), 280.0);
    variables.push_back({name, {"valid_time", "latitude", "longitude"}, Array::of(values, {1, 1, n}), {}});
  }
  write_netcdf(path, variables, {});
}

TEST_F(Era5, AnAxisAroundTheEarthClosesOneWithAGapDoesNot) {
  const auto kelvin_at = [&](double lon) {
    return read_era5(folder / "era5.nc", {0, lon, false, 0}).rows[0][Weather::air_temperature] + 273.15;
  };
  write_equator(folder / "era5.nc", {0, 90, 180, 270});
  EXPECT_NEAR(kelvin_at(315), 281.5, 1e-9);  // between the last and the first
  EXPECT_NEAR(kelvin_at(-22.5), 280.75, 1e-9);
  write_equator(folder / "era5.nc", {-120, -60, 0, 60, 120});
  EXPECT_NEAR(kelvin_at(150), 284, 1e-9);  // the next cell is two cells away
}

// Without a dew point or an air temperature the humidity is unknown, and not 100 %.
TEST_F(Era5, AMissingDewPointIsNoSaturatedAir) {
  for (const char* hole : {"d2m", "t2m"}) {
    write_day(folder / "era5.nc", [](int) { return 0; }, 48, 11, "seconds since 1970-01-01", hole);
    const WeatherTable table = read_era5(folder / "era5.nc", {48, 11, false, 0});
    for (size_t k = 0; k < table.rows.size(); ++k)
      EXPECT_EQ(std::isnan(table.rows[k][Weather::relative_humidity]), k == kHoleHour) << hole << " " << k;
  }
}

TEST_F(Era5, TimesThatAreNoneAreRefused) {
  const auto refusal_of = [&](const std::string& unit, const std::string& hole) {
    write_day(folder / "era5.nc", [](int) { return 0; }, 48, 11, unit, hole);
    return test::refusal([&] { read_era5(folder / "era5.nc", {48, 11, false, 0}); });
  };
  EXPECT_NE(refusal_of("seconds since 1970-01-01", "valid_time").find("a time of nan"), std::string::npos);
  EXPECT_NE(refusal_of("days since 1970-01-01", "").find("a time of 1621382400"), std::string::npos);
}

TEST(TimeUnits, OfTheConventions) {
  const auto text = [](const char* unit, double value) {
    const auto parsed = parse_time_unit(unit);
    return parsed ? civil_text(parsed->minutes_of(value)) : "none";
  };
  EXPECT_EQ(text("hours since 1900-01-01 00:00:00.0", 1063992), "2021-05-19T00:00");
  EXPECT_EQ(text("seconds since 1970-01-01", 1621382400), "2021-05-19T00:00");
  EXPECT_EQ(text("minutes since 1970-01-01 00:00:00 +01:00", 61), "1970-01-01T01:01");
  EXPECT_EQ(text("days since 2000-02-28T12:00", 1.5), "2000-03-01T00:00");
  EXPECT_EQ(text("months since 2000-01-01", 1), "none");
  EXPECT_EQ(text("hours after 2000-01-01", 1), "none");
}

}  // namespace
}  // namespace lockstep::io
