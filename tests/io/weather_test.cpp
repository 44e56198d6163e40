// Weather tables: EPW, UMEP's columns, CSV; gaps; what is refused, and how.
#include "io/series/weather/weather.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>

#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) { return error.what(); }
  return "nothing was thrown";
}
std::string refusal(const std::string& text) {
  return message_of([&] { complete_weather(parse_weather(text, "w")); });
}
void expect_refused(const std::string& text, const std::string& where, const std::string& what) {
  const std::string message = refusal(text);
  EXPECT_NE(message.find("[" + where + "]"), std::string::npos) << message;
  EXPECT_NE(message.find(what), std::string::npos) << message;
}

const std::string kHead = "time,Ta,RH,wind,Kglobal\n";
std::string csv_row(const std::string& time, const std::string& values = "20,50,2,100") {
  return time + "," + values + "\n";
}

TEST(CivilTime, AgreesWithTheCalendarOfTheLibrary) {
  using namespace std::chrono;
  for (int64_t day = -719162; day < 800000; day += 997) {
    const year_month_day date{sys_days{days{day}}};
    const CivilTime t = civil_time(day * kMinutesPerDay + 61);
    ASSERT_EQ(t.year, int(date.year()));
    ASSERT_EQ(t.month, int(unsigned(date.month())));
    ASSERT_EQ(t.day, int(unsigned(date.day())));
    ASSERT_EQ(t.hour * 60 + t.minute, 61);
    ASSERT_EQ(civil_minutes(t), day * kMinutesPerDay + 61);
    const sys_days first{date.year() / January / 1};
    ASSERT_EQ(day_of_year(day * kMinutesPerDay), (sys_days{date} - first).count() + 1);
  }
  EXPECT_FALSE(is_date(2015, 2, 29));
  EXPECT_TRUE(is_date(2016, 2, 29));
  EXPECT_FALSE(is_date(1900, 2, 29));
  EXPECT_EQ(civil_text(civil_minutes({2015, 12, 31, 24, 0})), "2016-01-01T00:00");
}

TEST(CivilTime, IsoTexts) {
  EXPECT_EQ(civil_text(parse_iso_time("2016-02-29 23:30")->minutes), "2016-02-29T23:30");
  EXPECT_EQ(parse_iso_time("2015-06-21T12:00:00+05:45")->utc_offset_h, 5.75);
  EXPECT_EQ(parse_iso_time("2015-06-21T12:00Z")->utc_offset_h, 0);
  EXPECT_EQ(parse_iso_time("2015-06-21T12:00-0330")->utc_offset_h, -3.5);
  for (const char* bad : {"2015-02-29T00:00", "2015-6-21T12:00", "2015-06-21", "2015-06-21T25:00", "",
                          "2015-06-21T12:00:30", "2015-06-21T12:00+99:00", "2015-06-21T12:60", "x"})
    EXPECT_FALSE(parse_iso_time(bad)) << bad;
}

TEST(Weather, Csv) {
  const WeatherTable t = parse_weather(
      "Time; ta; RH; wind; Kglobal; Kdiffuse; pressure\n2015-06-21T12:30+05:30; 20.5; 50; 2; 600; 90; "
      "1013.2\n"
      "2015-06-21T13:00+05:30; 21; ; -999; 610; nan; 1013\n",
      "w");
  EXPECT_EQ(t.step_min, 30);
  EXPECT_EQ(t.utc_offset_h, 5.5);
  EXPECT_EQ(t.rows[0][Weather::air_temperature], 20.5);
  EXPECT_EQ(t.rows[0][Weather::pressure], 1013.2);
  EXPECT_EQ(t.rows[1].line, 3);
  EXPECT_TRUE(std::isnan(t.rows[1][Weather::relative_humidity]));
  EXPECT_TRUE(std::isnan(t.rows[1][Weather::wind_speed]));
  EXPECT_FALSE(t.has(Weather::direct));
}

TEST(Weather, UmepColumns) {
  const std::string head =
      "%iy id it imin Q* QH QE Qs Qf Wind RH Td press rain Kdn snow ldown fcld wuh xsmd lai Kdiff Kdir Wd\n";
  const auto row = [](int year, int day, int hour, int minute) {
    return fmt::format(
        "{} {} {} {} -999 -999 -999 -999 -999 2.0 60 -3.5 101.3 -999 400 -999 300 -999 -999 -999 -999 60 800 "
        "-999\n",
        year, day, hour, minute);
  };
  const WeatherTable t =
      parse_weather(head + row(2016, 366, 23, 50) + row(2017, 1, 0, 0) + row(2017, 1, 0, 10), "w");
  EXPECT_EQ(t.step_min, 10);
  EXPECT_EQ(civil_text(t.rows[0].time), "2016-12-31T23:50");
  EXPECT_EQ(civil_text(t.rows[1].time), "2017-01-01T00:00");
  EXPECT_EQ(t.rows[0][Weather::pressure], 1013);
  EXPECT_EQ(t.rows[0][Weather::direct], 800);
  EXPECT_EQ(t.rows[0][Weather::diffuse], 60);
  EXPECT_EQ(t.rows[0][Weather::longwave_down], 300);
  EXPECT_EQ(t.rows[0][Weather::air_temperature], -3.5);
  expect_refused(head + row(2015, 366, 1, 0), "w:2", "day of the year");
  expect_refused(head + "2015 1 0 0 1 2 3\n", "w:2", "7 columns");
  expect_refused(row(2015, 1, 1, 0), "w:1", "column names");
  std::string other = head;
  other.replace(other.find("Wind RH"), 7, "RH Wind");
  expect_refused(other + row(2015, 1, 1, 0), "w:1", "column 10 is 'rh'");
  EXPECT_EQ(parse_weather("% " + head.substr(1) + row(2015, 1, 1, 0), "w").rows.size(), 1u);
}

std::string epw(const std::vector<std::string>& rows, int per_hour = 1) {
  std::string text =
      "LOCATION,Landvetter,-,SWE,IWEC Data,025260,57.67,12.30,1.0,169.0\nDESIGN CONDITIONS,0\n"
      "TYPICAL/EXTREME PERIODS,0\nGROUND TEMPERATURES,0\nHOLIDAYS/DAYLIGHT SAVINGS,No,0,0,0\n"
      "COMMENTS 1,x\nCOMMENTS 2,y\n";
  text += fmt::format("DATA PERIODS,1,{},Data,Sunday, 1/ 1,12/31\n", per_hour);
  for (const std::string& row : rows) text += row + "\n";
  return text;
}
std::string epw_row(const std::string& time, const std::string& ta = "-1.5", const std::string& rh = "93") {
  return time + ",C9C9C9," + ta + ",-2.3," + rh +
         ",101325,0,1415,280,120,30,110,0,0,0,0,180,3.1,9,9,9999,9999,0,0,0,0,0,0";
}

TEST(Weather, Epw) {
  const WeatherTable t = parse_weather(
      epw({epw_row("1999,2,28,24,60"), epw_row("1999,3,1,1,60", "99.9"), epw_row("1999,3,1,2,60")}), "w");
  EXPECT_EQ(t.latitude_deg, 57.67);
  EXPECT_EQ(t.utc_offset_h, 1.0);
  EXPECT_EQ(t.elevation_m, 169.0);
  EXPECT_EQ(civil_text(t.rows[0].time), "1999-03-01T00:00");
  EXPECT_TRUE(std::isnan(t.rows[1][Weather::air_temperature]));
  EXPECT_EQ(t.rows[0][Weather::pressure], 1013.25);
  EXPECT_EQ(t.rows[0][Weather::wind_speed], 3.1);
  // Fluxes that differ: infrared 280, global 120, direct normal 30, diffuse 110.
  EXPECT_EQ(t.rows[0][Weather::longwave_down], 280);
  EXPECT_EQ(t.rows[0][Weather::global], 120);
  EXPECT_EQ(t.rows[0][Weather::direct], 30);
  EXPECT_EQ(t.rows[0][Weather::diffuse], 110);
  EXPECT_EQ(t.rows[0].line, 9);
  // A typical year: months of several years become those of one.
  const WeatherTable typical =
      parse_weather(epw({epw_row("1991,1,31,24,60"), epw_row("1988,2,1,1,60")}), "w");
  EXPECT_EQ(typical.step_min, 60);
  EXPECT_EQ(civil_text(typical.rows[0].time), "2001-02-01T00:00");
  // Half hours.
  const WeatherTable half = parse_weather(epw({epw_row("1991,1,1,1,30"), epw_row("1991,1,1,1,60")}, 2), "w");
  EXPECT_EQ(half.step_min, 30);
  EXPECT_EQ(civil_text(half.rows[0].time), "1991-01-01T00:30");
  expect_refused(epw({epw_row("1991,1,1,25,60")}), "w:9", "hour");
  expect_refused(epw({epw_row("1991,2,30,1,60")}), "w:9", "1991-2-30");
  expect_refused(epw({"1991,1,1,1,60,x,1"}), "w:9", "7 fields");
  expect_refused(epw({epw_row("1991,1,1,1,60", "warm")}), "w:9", "Ta");
}

TEST(Weather, EpwIsOfAPlaceOnEarth) {
  const std::string file = epw({epw_row("1991,1,1,1,60")}), place = "57.67,12.30,1.0,169.0";
  const auto at = [&](const char* text) {
    return std::string(file).replace(file.find(place), place.size(), text);
  };
  for (const char* good : {"-90,-180,-12,-420", "90,180,14,8848"})
    EXPECT_NO_THROW(parse_weather(at(good), "w"));
  for (const auto& [bad, what] : {std::pair("90.1,0,0,0", "the latitude"),
                                  {"-90.1,0,0,0", "the latitude"},
                                  {"0,180.1,0,0", "the longitude"},
                                  {"0,-180.1,0,0", "the longitude"},
                                  {"0,0,14.5,0", "the time zone"},
                                  {"0,0,-14.5,0", "the time zone"},
                                  {"0,0,0,1e4", "the elevation"},
                                  {"0,0,0,-1001", "the elevation"}})
    expect_refused(at(bad), "w:1", what);
}

TEST(Weather, WhatIsRefusedNamesFileAndLine) {
  const std::string one = csv_row("2015-06-21T12:00"), two = csv_row("2015-06-21T13:00");
  expect_refused("time,Ta,RH\n2015-06-21T12:00,1,2\n", "w:1", "no column wind, Kglobal");
  expect_refused(kHead + two + one, "w:3", "2015-06-21T12:00 after 2015-06-21T13:00");
  expect_refused(kHead + one + one, "w:3", "is repeated");
  expect_refused(kHead + csv_row("9999-06-21T12:00"), "w:2", "the year 9999");
  expect_refused(kHead + csv_row("21.6.2015 12:00"), "w:2", "time is '21.6.2015 12:00'");
  expect_refused(kHead + csv_row("2015-02-29T12:00"), "w:2", "time");
  expect_refused(kHead + csv_row("2015-06-21T12:00", "20,50,2"), "w:2", "4 fields");
  expect_refused(kHead + csv_row("2015-06-21T12:00", "20,x,2,1"), "w:2", "RH is 'x'");
  expect_refused(kHead + csv_row("2015-06-21T12:00", "80,50,2,1"), "w:2", "Ta is 80");
  expect_refused(kHead + csv_row("2015-06-21T12:00", "20,0,2,1"), "w:2", "RH is 0");
  expect_refused(kHead + csv_row("2015-06-21T12:00", "20,101,2,1"), "w:2", "RH is 101");
  expect_refused(kHead + csv_row("2015-06-21T12:00", "20,50,-1,1"), "w:2", "wind is -1");
  expect_refused(kHead + csv_row("2015-06-21T12:00", "20,50,1,-50"), "w:2", "Kglobal is -50");
  expect_refused(kHead + csv_row("2015-06-21T12:00", "20,50,1,5000"), "w:2", "Kglobal is 5000");
  expect_refused(kHead, "w", "no rows");
  expect_refused(kHead + csv_row("2015-06-21T12:00Z") + csv_row("2015-06-21T13:00+01:00"), "w:3", "offset");
  expect_refused(
      kHead + one + csv_row("2015-06-21T13:00") + csv_row("2015-06-21T14:00") + csv_row("2015-06-21T14:50"),
      "w:5", "evenly");
  EXPECT_EQ(parse_weather(kHead + csv_row("2015-06-21T12:00", "20,50,1,-3"), "w").rows[0][Weather::global],
            0);
}

// Of each quantity the last value that is read and the first that is refused, at both ends.
TEST(Weather, LimitsOfEachQuantity) {
  struct Limit {
    const char* name;
    std::vector<double> good, bad;
  };
  const Limit limits[] = {
      {"Ta", {-90, 60}, {-90.5, 60.5}},        {"RH", {0.5, 100}, {0, 100.5}},
      {"wind", {0, 100}, {-0.5, 100.5}},       {"Kglobal", {0, 1600}, {-10.5, 1600.5}},
      {"Kdirect", {0, 1600}, {-10.5, 1600.5}}, {"Kdiffuse", {0, 1600}, {-10.5, 1600.5}},
      {"Ldown", {40, 700}, {39.5, 700.5}},     {"pressure", {400, 1100}, {399.5, 1100.5}}};
  for (size_t k = 0; k < std::size(limits); ++k) {
    const auto with = [&](double value) {
      std::string head = "time", row = "2015-06-21T12:00";
      for (size_t q = 0; q < std::size(limits); ++q) {
        head += fmt::format(",{}", limits[q].name);
        row += fmt::format(",{}", q == k ? value : limits[q].good[1]);
      }
      return head + "\n" + row + "\n";
    };
    for (const double value : limits[k].good)
      EXPECT_EQ(parse_weather(with(value), "w").rows[0][static_cast<Weather>(k)], value) << limits[k].name;
    for (const double value : limits[k].bad)
      expect_refused(with(value), "w:2", fmt::format("{} is {:g}", limits[k].name, value));
  }
}

TEST(Weather, StepsAreOfOneMinuteToSixHours) {
  const auto apart = [](int minutes) {
    std::string text = kHead;
    for (int k = 0; k < 3; ++k) text += csv_row(civil_text(civil_minutes({2015, 6, 21, 0, k * minutes})));
    return text;
  };
  for (const int minutes : {1, 360}) EXPECT_EQ(parse_weather(apart(minutes), "w").step_min, minutes);
  expect_refused(apart(361), "w:3", "times 361 minutes apart");
}

TEST(Weather, GapsOfThreeHoursAreFilledLongerOnesRefused) {
  const auto at = [](int hour, double ta) {
    return csv_row(fmt::format("2015-06-21T{:02}:00", hour), fmt::format("{},50,2,{}", ta, 10 * hour));
  };
  std::vector<FilledGap> filled;
  const std::string text = kHead + at(1, 10) + at(2, 11) + at(3, 12) + at(7, 20) + at(8, 20);
  const WeatherTable whole = parse_weather(text, "w"), t = complete_weather(whole, {}, {}, &filled);
  ASSERT_EQ(t.rows.size(), 8u);
  EXPECT_DOUBLE_EQ(t.rows[3][Weather::air_temperature], 14);
  EXPECT_DOUBLE_EQ(t.rows[5][Weather::global], 60);
  ASSERT_EQ(filled.size(), 1u);
  EXPECT_EQ(filled[0].quantity, "row");
  EXPECT_EQ(civil_text(filled[0].first), "2015-06-21T04:00");
  EXPECT_EQ(civil_text(filled[0].last), "2015-06-21T06:00");
  expect_refused(kHead + at(1, 1) + at(2, 1) + at(3, 1) + at(8, 2), "w:5",
                 "no rows between 2015-06-21T03:00 (line 4)");

  const std::string holes = kHead + at(1, 10) + csv_row("2015-06-21T02:00", ",50,2,20") + at(3, 12);
  filled.clear();
  EXPECT_DOUBLE_EQ(
      complete_weather(parse_weather(holes, "w"), {}, {}, &filled).rows[1][Weather::air_temperature], 11);
  ASSERT_EQ(filled.size(), 1u);
  EXPECT_EQ(filled[0].quantity, "Ta");
  expect_refused(kHead + csv_row("2015-06-21T01:00", ",50,2,20") + at(2, 1), "w:2", "Ta is missing");
  std::string long_hole = kHead + at(1, 10);
  for (int hour = 2; hour < 6; ++hour)
    long_hole += csv_row(fmt::format("2015-06-21T{:02}:00", hour), "1,,2,5");
  expect_refused(long_hole + at(6, 2), "w:3", "RH is missing from 2015-06-21T02:00 to 2015-06-21T05:00");
  expect_refused(kHead + csv_row("2015-06-21T01:00", "1,50,2,"), "w", "Kglobal is missing in all rows");
}

TEST(Weather, ADirectionHoldsForThreeHours) {
  std::string text = "time,Ta,RH,wind,Kglobal,wind_direction\n";
  for (int hour = 0; hour < 6; ++hour)
    text += csv_row(fmt::format("2015-06-21T{:02}:00", hour), hour == 0 ? "20,50,1,0,270" : "20,50,0,0,");
  const WeatherTable t = complete_weather(parse_weather(text, "w"));
  for (size_t k = 0; k < t.rows.size(); ++k) {
    const double direction = t.rows[k][Weather::wind_direction];
    EXPECT_TRUE(k <= 3 ? direction == 270 : std::isnan(direction)) << k << ": " << direction;
  }
}

TEST(Weather, ChosenTimes) {
  std::string text = kHead;
  for (int hour = 0; hour < 24; ++hour) text += csv_row(fmt::format("2016-02-29T{:02}:00", hour));
  const WeatherTable whole = parse_weather(text, "w");
  const auto time = [](int hour) { return civil_minutes({2016, 2, 29, hour, 0}); };
  const WeatherTable part = complete_weather(whole, time(6), time(9));
  ASSERT_EQ(part.rows.size(), 4u);
  EXPECT_EQ(part.rows[0].time, time(6));
  for (const auto& [first, last] :
       {std::pair{time(-1), time(3)}, {time(3), time(24)}, {time(30), time(31)}}) {
    const std::string message = message_of([&] { complete_weather(whole, first, last); });
    EXPECT_NE(message.find("2016-02-29T00:00 to 2016-02-29T23:00"), std::string::npos) << message;
  }
  EXPECT_NE(message_of([&] { complete_weather(whole, time(9), time(3)); }).find("--to"), std::string::npos);
  EXPECT_NE(message_of([&] { complete_weather(whole, time(5) + 10, time(5) + 20); }).find("no weather"),
            std::string::npos);
}

}  // namespace
