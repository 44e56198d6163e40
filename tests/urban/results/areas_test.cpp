// Areas on grids by closed forms and sums that must agree, and tables of areas of runs whose numbers are known.
#include "lockstep/urban/areas.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>

#include "core/refusal.hpp"
#include "core/temporary_folder.hpp"
#include "io/text/file.hpp"
#include "io/vectors/geopackage.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/report.hpp"
#include "urban/areas/coverage.hpp"
#include "urban/areas/zonal.hpp"
#include "urban/results/written_run.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
using lockstep::test::TemporaryFolder;
using testing::WrittenRun;

/// 20 rows and 30 columns of 2 m, the upper left corner at (1000, 2000).
io::RasterGrid map_grid() {
  io::RasterGrid grid;
  grid.rows = 20;
  grid.cols = 30;
  grid.has_transform = true;
  grid.transform = {1000, 2, 0, 2000, 0, -2};
  return grid;
}

Coverage covered(std::vector<Ring> rings) { return coverage_of({"test", "a", std::move(rings)}, map_grid()); }

std::map<uint32_t, double> shares_of(const Coverage& c) {
  std::map<uint32_t, double> shares;
  for (size_t k = 0; k < c.pixels.size(); ++k) shares[c.pixels[k]] = c.shares[k];
  return shares;
}

TEST(Coverage, RectanglesHaveTheirShares) {
  const auto whole = shares_of(covered({{{1004, 1996}, {1010, 1996}, {1010, 1992}, {1004, 1992}}}));
  ASSERT_EQ(whole.size(), 6u) << "columns 2 to 4 of rows 2 and 3";
  for (const auto& [pixel, share] : whole) EXPECT_EQ(share, 1) << pixel;
  EXPECT_EQ(whole.begin()->first, 2u * 30 + 2);
  // A quarter of a pixel off to the right, half a pixel down.
  const auto part = shares_of(covered({{{1004.5, 1995}, {1006.5, 1995}, {1006.5, 1993}, {1004.5, 1993}}}));
  ASSERT_EQ(part.size(), 4u);
  EXPECT_DOUBLE_EQ(part.at(2 * 30 + 2), 0.75 * 0.5);
  EXPECT_DOUBLE_EQ(part.at(2 * 30 + 3), 0.25 * 0.5);
  EXPECT_DOUBLE_EQ(part.at(3 * 30 + 2), 0.75 * 0.5);
  EXPECT_DOUBLE_EQ(part.at(3 * 30 + 3), 0.25 * 0.5);
}

// A right triangle over 2 x 2 pixels: half of those on the diagonal, all of that below it.
TEST(Coverage, TrianglesByClosedForm) {
  const auto shares = shares_of(covered({{{1000, 2000}, {1000, 1996}, {1004, 1996}}}));
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_DOUBLE_EQ(shares.at(0), 0.5);
  EXPECT_DOUBLE_EQ(shares.at(30), 1);
  EXPECT_DOUBLE_EQ(shares.at(31), 0.5);
}

TEST(Coverage, ATurnedSquareKeepsItsArea) {
  for (const double turn : {0.1, 0.7, 1.3, 2.9}) {
    Ring ring;
    for (int k = 0; k < 4; ++k) {
      const double angle = turn + k * std::numbers::pi / 2;
      ring.push_back({1031 + 15 * std::cos(angle), 1979 + 15 * std::sin(angle)});
    }
    const Coverage forth = covered({ring});
    EXPECT_NEAR(forth.inside * 4, 2 * 15 * 15, 1e-9);
    EXPECT_NEAR(forth.whole, forth.inside, 1e-9);
    std::ranges::reverse(ring);
    const Coverage back = covered({ring});
    EXPECT_EQ(back.pixels, forth.pixels);
    EXPECT_NEAR(back.inside, forth.inside, 1e-12);
  }
}

TEST(Coverage, HolesAndPartsInAnyOrientation) {
  const Ring outer = {{1002, 1998}, {1022, 1998}, {1022, 1978}, {1002, 1978}},
             hole = {{1007, 1993}, {1011, 1993}, {1011, 1985}, {1007, 1985}},
             island = {{1008, 1992}, {1009, 1992}, {1009, 1991}, {1008, 1991}},
             other = {{1041, 1969}, {1046, 1969}, {1046, 1966}, {1041, 1966}};
  for (const int turned : {0, 1, 2, 3}) {
    std::vector<Ring> rings = {outer, hole, island, other};
    if (turned & 1) std::ranges::reverse(rings[0]);
    if (turned & 2) std::ranges::reverse(rings[1]);
    const Coverage c = covered(rings);
    EXPECT_NEAR(c.inside * 4, 400 - 32 + 1 + 15, 1e-9) << turned;
    const auto shares = shares_of(c);
    EXPECT_FALSE(shares.contains(5 * 30 + 4)) << "within the hole";
    EXPECT_DOUBLE_EQ(shares.at(3 * 30 + 3), 0.75) << "the hole's corner takes a quarter";
  }
}

// Parts that share an edge, wherever a ring begins, and a hole that begins on the boundary around it.
TEST(Coverage, PartsThatTouch) {
  const Ring east = {{1012.6, 1998}, {1020, 1998}, {1020, 1988}, {1012.6, 1988}},
             hole = {{1003, 1992}, {1006, 1990}, {1006, 1994}};
  Ring west = {{1003, 1998}, {1003, 1988}, {1012.6, 1988}, {1012.6, 1998}};
  for (int begin = 0; begin < 4; ++begin) {
    std::ranges::rotate(west, west.begin() + 1);
    const Coverage whole = covered({west, east});
    EXPECT_NEAR(whole.inside * 4, 170, 1e-9) << begin;
    EXPECT_NEAR(whole.whole, whole.inside, 1e-9) << begin;
    EXPECT_DOUBLE_EQ(shares_of(whole).at(3 * 30 + 6), 1) << "both parts of the pixel";
    EXPECT_NEAR(covered({west, hole, east}).inside * 4, 170 - 6, 1e-9) << begin;
  }
}

// Triangles from a point inside to corners on the boundary tile the grid: each pixel is covered once.
TEST(Coverage, ATilingCoversEveryPixelOnce) {
  const Corner middle{1023.37, 1981.11};
  std::vector<Corner> rim;
  for (const double x : {1000.0, 1003.3, 1017.1, 1044.0, 1059.9}) rim.push_back({x, 2000});
  for (const double y : {2000.0, 1987.7, 1966.6}) rim.push_back({1060, y});
  for (const double x : {1060.0, 1031.4, 1002.2}) rim.push_back({x, 1960});
  for (const double y : {1960.0, 1971.3, 1999.0}) rim.push_back({1000, y});
  std::vector<double> sums(20 * 30);
  double weighted = 0, all = 0;
  for (size_t k = 0; k < rim.size(); ++k) {
    const Coverage c = covered({{middle, rim[k], rim[(k + 1) % rim.size()]}});
    for (size_t p = 0; p < c.pixels.size(); ++p) {
      sums[c.pixels[p]] += c.shares[p];
      weighted += c.shares[p] * std::sin(double(c.pixels[p]));
    }
  }
  for (size_t p = 0; p < sums.size(); ++p) {
    EXPECT_NEAR(sums[p], 1, 1e-10) << p;
    all += std::sin(double(p));
  }
  EXPECT_NEAR(weighted, all, 1e-9);
}

TEST(Coverage, WhatLiesOutsideIsCutOff) {
  const Coverage c = covered({{{900, 1999}, {1003, 1999}, {1003, 2100}, {900, 2100}}});
  EXPECT_NEAR(c.inside * 4, 3 * 1, 1e-9);
  EXPECT_NEAR(c.whole * 4, 103 * 101, 1e-6);
  // A diamond around the lower right corner.
  EXPECT_NEAR(covered({{{1060, 1970}, {1070, 1960}, {1060, 1950}, {1050, 1960}}}).inside * 4, 50, 1e-9);
  EXPECT_EQ(covered({{{0, 0}, {1, 0}, {1, 1}}}).inside, 0);
  EXPECT_EQ(covered({{{1070, 1990}, {1080, 1990}, {1080, 1980}}}).pixels.size(), 0u);
}

// A polygon is a ring and the holes directly in it, regardless of the order and the orientation of the rings.
TEST(AreaShapes, HolesGoWithTheRingAroundThem) {
  const io::MapRing outer = {{0, 0}, {9, 0}, {9, 9}, {0, 9}}, hole = {{1, 1}, {1, 6}, {6, 6}, {6, 1}},
                    island = {{2, 2}, {4, 2}, {4, 4}, {2, 4}}, pit = {{7, 7}, {7, 8}, {8, 8}, {8, 7}};
  EXPECT_EQ(
      io::wkt_of_area({hole, pit, outer, island}),
      "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 1 6, 6 6, 6 1, 1 1), (7 7, 7 8, 8 8, 8 7, 7 7)), "
      "((2 2, 4 2, 4 4, 2 4, 2 2)))");
  EXPECT_EQ(io::wkt_of_area({island, outer}),
            "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 9, 0 0), (2 2, 4 2, 4 4, 2 4, 2 2)))");
}

TEST(AreaShapes, RefusesWhatIsNoArea) {
  const auto refused = [](std::vector<Ring> rings) {
    try {
      check_shape({"a.geojson, feature 2", "a", std::move(rings)});
    } catch (const InputError& error) { return std::string(error.what()); }
    return std::string();
  };
  EXPECT_NE(refused({{{0, 0}, {2, 2}, {2, 0}, {0, 2}}}).find("crosses itself"), std::string::npos);
  EXPECT_NE(refused({{{0, 0}, {4, 0}, {4, 4}}, {{3, 1}, {9, 1}, {9, 2}}}).find("feature 2"),
            std::string::npos);
  EXPECT_NE(refused({{{0, 0}, {2, 2}}}).find("2 corners"), std::string::npos);
  EXPECT_NE(refused({{{0, 0}, {2, 0}, {2, 2}}, {{2, 2}, {2, 0}, {0, 0}}}).find("the same ring twice"),
            std::string::npos);
  EXPECT_NE(refused({{{0, 0}, {2, NAN}, {2, 0}}}).find("not a number"), std::string::npos);
  EXPECT_EQ(refused({{{0, 0}, {4, 0}, {4, 4}, {0, 4}}, {{0, 0}, {1, 2}, {2, 1}}}), "") << "a hole may touch";
}

TEST(ZonalStatistics, AreWeightedByShares) {
  const Zone zone{0, "", {0, 1, 2, 3}, {1, 0.5, 0.25, 1}};
  ZoneValues values;
  values.take(zone, std::vector<float>{10, 20, 40, NAN});
  const std::vector<double> shares = {0, 50, 57, 60, 100};
  const ZonalStatistics s = values.statistics(shares);
  EXPECT_DOUBLE_EQ(s.weight, 1.75);
  EXPECT_DOUBLE_EQ(s.mean, (10 + 10 + 10) / 1.75);
  EXPECT_DOUBLE_EQ(s.deviation, std::sqrt((100 + 200 + 400) / 1.75 - s.mean * s.mean));
  EXPECT_EQ(s.minimum, 10);
  EXPECT_EQ(s.maximum, 40);
  EXPECT_EQ(s.percentiles, (std::vector<double>{10, 10, 10, 20, 40})) << "10 up to 1 / 1.75 = 57.1 %";
  EXPECT_DOUBLE_EQ(values.weight_where([](double v) { return v > 15; }), 0.75);
  EXPECT_TRUE(std::isnan(ZoneValues{}.statistics(shares).mean));
}

// A percentile is the least value up to which there is its share: 10, 20 … 100 of ten values of equal weights are these.
TEST(ZonalStatistics, PercentilesOfWholeSharesAreTheirValues) {
  const std::vector<double> tenths = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
  for (int percent = 1; percent <= 100; ++percent)
    for (const float step : {100.0f, 1.0f, 1e-4f}) {  // far apart, and close to each other next to a far one
      ZoneValues values;
      std::vector<double> expected;
      for (int k = 0; k < 10; ++k) {
        values.values.push_back(k == 9 ? 1000.0f : 10 + step * static_cast<float>(k));
        values.weights.push_back(percent / 100.0);
        expected.push_back(static_cast<double>(values.values.back()));
      }
      EXPECT_EQ(values.statistics(tenths).percentiles, expected) << percent << " % of each pixel, " << step;
    }
}

TEST(AreaThresholds, Texts) {
  const Threshold t = parse_threshold("utci>=38.5");
  EXPECT_EQ(t.output, "utci");
  EXPECT_TRUE(t.holds(38.5) && t.holds(40) && !t.holds(38));
  EXPECT_FALSE(parse_threshold("utci>38").holds(38));
  EXPECT_TRUE(parse_threshold("tmrt<0").holds(-1) && !parse_threshold("tmrt<0").holds(0));
  // Grids have single precision: the nearest number to a bound equals it.
  EXPECT_TRUE(parse_threshold("tmrt>=55.1").holds(55.1f));
  EXPECT_FALSE(parse_threshold("tmrt>38.2").holds(38.2f));
  for (const char* text : {"utci", ">38", "utci>", "utci>x", "utci=38", "", "utci>nan", "utci<inf"})
    EXPECT_THROW(parse_threshold(text), InputError) << text;
}

/// Three hours over two days; UTCI is 20 + 10·step + the column; column 5 is a roof.
WrittenRun warm_run() {
  WrittenRun run;
  run.times = {"2015-06-21T23:00", "2015-06-22T00:00", "2015-06-22T01:00"};
  run.ground = [](int64_t, int64_t col) { return col != 5; };
  run.outputs["utci"] = [](size_t step, int64_t, int64_t col) {
    return float(20 + 10 * int(step) + int(col));
  };
  run.outputs["tmrt"] = [](size_t, int64_t row, int64_t) { return float(row); };
  run.summaries["utci_max"] = [](int64_t, int64_t) { return 44.0f; };
  return run;
}

struct Table {
  TemporaryFolder folder;
  AreaStatisticsOptions options;
  explicit Table(const std::string& wkt, const WrittenRun& run = warm_run()) {
    run.write(folder / "run");
    options.run = folder / "run";
    options.areas = folder / "areas.csv";
    options.file = folder / "table.csv";
    write_file(options.areas, "name,wkt\n" + wkt);
  }
  std::string refusal() const {
    try {
      area_statistics(options);
    } catch (const InputError& error) {
      EXPECT_FALSE(fs::exists(options.file));
      return error.what();
    }
    return "nothing was thrown";
  }
};

// The grid is 4 rows and 6 columns of 2 m from the origin: x to 12, y to 8.
constexpr const char* kWest = "west,\"POLYGON ((0 0, 3 0, 3 8, 0 8, 0 0))\"\n";
constexpr const char* kEast = "east,\"MULTIPOLYGON (((8 0, 12 0, 12 8, 8 8, 8 0)))\"\n";

void expect_text(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(AreaStatistics, HoursDaysAndThePeriod) {
  Table table(std::string(kWest) + kEast);
  table.options.outputs = {"utci"};
  table.options.thresholds = {"utci>30", "utci<=30"};
  table.options.periods = {AreaPeriod::hour, AreaPeriod::day, AreaPeriod::period};
  const AreaStatisticsResult result = area_statistics(table.options);
  ASSERT_EQ(result.rows.size(), 2u * (3 + 2 + 1));
  const AreaRow& night = result.rows[0];
  EXPECT_EQ(night.area, "west");
  EXPECT_EQ(night.time, "2015-06-21T23:00");
  EXPECT_DOUBLE_EQ(night.m2, 24);
  EXPECT_DOUBLE_EQ(night.mean, 20 + (1 * 0 + 0.5 * 1) / 1.5);
  EXPECT_EQ(night.maximum, 21);
  EXPECT_EQ(night.threshold_m2[0], 0);
  // 30 and 31 at 00:00, which is the first day's last interval: the pixels of column 1, half of each, are above.
  EXPECT_DOUBLE_EQ(result.rows[1].threshold_m2[0], 4 * 2);
  EXPECT_DOUBLE_EQ(result.rows[1].threshold_m2[1], 4 * 4);
  EXPECT_EQ(result.rows[3].time, "2015-06-21");
  EXPECT_DOUBLE_EQ(result.rows[3].mean, night.mean + 5);
  EXPECT_DOUBLE_EQ(result.rows[3].threshold_hours[0], 8.0 / 24);
  EXPECT_EQ(result.rows[4].time, "2015-06-22");
  const AreaRow& all = result.rows[5];
  EXPECT_EQ(all.time, "all");
  EXPECT_NEAR(all.mean, night.mean + 10, 1e-6);
  EXPECT_DOUBLE_EQ(all.threshold_m2[0], (8 + 24) / 3.0);
  EXPECT_DOUBLE_EQ(all.threshold_hours[0] + all.threshold_hours[1], 3);
  EXPECT_EQ(result.rows[6].area, "east");
  EXPECT_EQ(result.rows[6].m2, 16) << "column 4; column 5 is a roof";
  EXPECT_EQ(result.rows[6].mean, 24);
  table.options.include_roofs = true;
  EXPECT_EQ(area_statistics(table.options).rows[6].mean, 24.5);
  const std::string text = io::read_text_file(table.options.file);
  expect_text(
      "area,output,unit,time,m2,mean,sd,min,max,p5,p50,p95,\"utci>30 m2\",\"utci>30 h\",\"utci<=30 "
      "m2\",\"utci<=30 h\"\n",
      text);
  expect_text("\nwest,utci,degC,2015-06-21T23:00,24,20.3333333,", text);
}

TEST(AreaStatistics, TheDocumentIsTheTable) {
  Table table(kWest);
  table.options.outputs = {"utci"};
  table.options.thresholds = {"utci>30"};
  table.options.percentiles = {40, 90};
  const auto document = nlohmann::json::parse(to_json(area_statistics(table.options)));
  EXPECT_EQ(document["areas"], 1);
  EXPECT_EQ(document["outside"], 0);
  EXPECT_EQ(document["steps"], 3);
  ASSERT_EQ(document["rows"].size(), 1u);
  const auto row = document["rows"][0];
  EXPECT_EQ(row["output"], "utci");
  EXPECT_EQ(row["unit"], "degC");
  EXPECT_EQ(row["m2"], 24);
  // Two thirds of the area have 30, one third 31.
  EXPECT_NEAR(row["mean"].get<double>(), 30 + 1 / 3.0, 1e-6);
  EXPECT_NEAR(row["sd"].get<double>(), std::sqrt(2) / 3, 1e-6);
  EXPECT_EQ(row["min"], 30);
  EXPECT_EQ(row["max"], 31);
  EXPECT_EQ(row["percentiles"], (nlohmann::json{{40.0, 30.0}, {90.0, 31.0}}));
  EXPECT_NEAR(row["thresholds"]["utci>30"]["m2"].get<double>(), (8 + 24) / 3.0, 1e-9);
  EXPECT_NEAR(row["thresholds"]["utci>30"]["hours"].get<double>(), (1 / 3.0 + 1), 1e-9);
}

TEST(AreaStatistics, WindowsOfTheDay) {
  Table table(kWest);
  table.options.outputs = {"tmrt", "utci_max"};
  table.options.hours = HourWindow{23, 24};
  const AreaStatisticsResult result = area_statistics(table.options);
  EXPECT_EQ(result.steps, 1) << "the interval that ends at midnight";
  ASSERT_EQ(result.rows.size(), 2u);
  EXPECT_EQ(result.rows[0].mean, 1.5);
  EXPECT_EQ(result.rows[1].output, "utci_max");
  EXPECT_EQ(result.rows[1].mean, 44);
  table.options.hours = HourWindow{3, 9};
  fs::remove(table.options.file);
  expect_text("no step from 3 to 9", table.refusal());
}

TEST(AreaStatistics, OneStepHasItsOwnLength) {
  WrittenRun half = warm_run();
  half.times = {"2015-06-21T12:30"};
  half.step_minutes = 30;
  Table table(kWest, half);
  table.options.outputs = {"utci"};
  table.options.thresholds = {"utci>10"};
  table.options.hours = HourWindow{12, 13};
  const AreaStatisticsResult result = area_statistics(table.options);
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(result.rows[0].threshold_hours[0], 0.5);
}

// A value that is missing at one step is beyond a bound at the others: of an hour there is one with a value.
TEST(AreaStatistics, HoursWhereValuesAreMissingAtSteps) {
  WrittenRun run = warm_run();
  run.outputs["pet"] = [](size_t step, int64_t, int64_t col) {
    return col == 0 && step == 1 ? NAN : col == 0 ? 50.0f : 30.0f;
  };
  Table table(kWest, run);  // column 0, and half of column 1
  table.options.outputs = {"pet"};
  table.options.thresholds = {"pet>41", "pet<=41"};
  const AreaStatisticsResult result = area_statistics(table.options);
  const AreaRow& all = result.rows.at(0);
  EXPECT_DOUBLE_EQ(all.threshold_m2[0], 16 * 2 / 3.0);
  EXPECT_DOUBLE_EQ(all.threshold_hours[0] + all.threshold_hours[1], 3);
  EXPECT_DOUBLE_EQ(all.threshold_hours[0], 3 * 32 / (24 + 24 + 8.0));
}

TEST(AreaStatistics, ByClassAndByLandCover) {
  Table table(kWest);
  table.options.groups = AreaGroups::stress;
  table.options.periods = {AreaPeriod::hour, AreaPeriod::period};
  const AreaStatisticsResult classes = area_statistics(table.options);
  // 20 and 21 no stress; 30 and 31 moderate; 40 and 41 very strong.
  ASSERT_EQ(classes.rows.size(), 6u);
  for (const AreaRow& row : classes.rows) EXPECT_DOUBLE_EQ(row.m2, row.time == "all" ? 8 : 24);
  EXPECT_EQ(classes.rows[0].group, "no thermal stress");
  EXPECT_DOUBLE_EQ(classes.rows[0].mean, 20 + 1.0 / 3);
  EXPECT_TRUE(std::isnan(classes.rows[1].mean)) << "of a period only the ground";
  WrittenRun covers;
  covers.write_grid(table.folder / "cover.npy", [](int64_t row, int64_t) { return row < 1 ? 1 : 5; });
  table.options.groups = AreaGroups::land_cover;
  table.options.land_cover = table.folder / "cover.npy";
  table.options.outputs = {"tmrt"};
  table.options.periods = {AreaPeriod::period};
  const AreaStatisticsResult cover = area_statistics(table.options);
  ASSERT_EQ(cover.rows.size(), 2u);
  EXPECT_EQ(cover.rows[0].group, "1 asphalt");
  EXPECT_EQ(cover.rows[1].group, "5 grass");
  EXPECT_EQ(cover.rows[0].m2, 6);
  EXPECT_EQ(cover.rows[1].mean, 2) << "rows 1 to 3";
  covers.write_grid(table.folder / "cover.npy", [](int64_t row, int64_t) { return row < 1 ? 1.0 : 15.5; });
  fs::remove(table.options.file);
  expect_text("land cover 15.5 at row 1, column 0", table.refusal());
  expect_text("cover.npy", table.refusal());
}

TEST(AreaStatistics, LandCoverOfTheRun) {
  Table table(kWest);
  WrittenRun run = warm_run();
  const fs::path cover = table.folder / "cover.npy", names = table.folder / "names.json";
  run.write_grid(cover, [](int64_t row, int64_t) { return row < 1 ? 4 : 12; });
  write_file(names, R"({"Code": {"Value": {"Gravel": 4}}, "Albedo": {"Value": {"Gravel": 0.2}},
"Emissivity": {"Value": {"Gravel": 0.95}}, "Ts_deg": {"Value": {"Gravel": 0.4}}, "Tstart": {"Value": {"Gravel": -3}},
"TmaxLST": {"Value": {"Gravel": 15}}})");
  run.places = {{"land-cover", cover}, {"parameters", names}};
  run.write(table.folder / "run");
  table.options.groups = AreaGroups::land_cover;
  table.options.outputs = {"tmrt"};
  const AreaStatisticsResult result = area_statistics(table.options);
  ASSERT_EQ(result.rows.size(), 2u);
  EXPECT_EQ(result.rows[0].group, "4 Gravel") << "the run's own table";
  EXPECT_EQ(result.rows[1].group, "12");
  run.write_grid(cover, [](int64_t, int64_t) { return 5; });
  fs::remove(table.options.file);
  expect_text("cover.npy is gone or has changed since the run", table.refusal());
}

TEST(AreaStatistics, CountsOrRefusesWhatLiesOutside) {
  const std::string far = "far,\"POLYGON ((90 0, 93 0, 93 8, 90 0))\"\n",
                    part = "part,\"POLYGON ((-2 0, 2 0, 2 8, -2 8, -2 0))\"\n";
  const AreaStatisticsResult result = area_statistics(Table(kWest + far + part).options);
  EXPECT_EQ(result.outside, 1);
  EXPECT_EQ(result.partly, 1);
  EXPECT_EQ(result.warnings.size(), 2u);
  EXPECT_EQ(result.rows.size(), 3u * 2) << "an area without ground keeps its row";
  expect_text("all areas lie outside", Table(far).refusal());
  expect_text("areas.csv", Table(far).refusal());
  expect_text("raster: x from 90 to 93, y from 0 to 8", Table(far).refusal());
}

TEST(AreaStatistics, RefusesBadInput) {
  expect_text("crosses itself", Table("bow,\"POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))\"\n").refusal());
  expect_text("an area of 0 m² [", Table("line,\"POLYGON ((0 0, 4 0, 2 0, 0 0))\"\n").refusal());
  // Boundaries that run along each other cross nowhere.
  for (const char* twice : {"MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((2 0, 8 0, 8 4, 2 4, 2 0)))",
                            "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (2 0, 8 0, 8 4, 2 4, 2 0))",
                            "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0, 4 0, 4 4, 0 4, 0 0))"})
    expect_text("parts of its polygons overlap", Table(fmt::format("twice,\"{}\"\n", twice)).refusal());
  expect_text(
      "parts of its polygons overlap",
      Table("in,\"MULTIPOLYGON (((0 0, 6 0, 6 6, 0 6, 0 0)), ((2 2, 4 2, 4 4, 2 4, 2 2)))\"\n").refusal());
  expect_text("a hole outside of its polygon",
              Table("out,\"POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0), (4 4, 6 4, 6 6, 4 6, 4 4))\"\n").refusal());
  Table island(
      "isle,\"MULTIPOLYGON (((0 0, 6 0, 6 6, 0 6, 0 0), (1 1, 5 1, 5 5, 1 5, 1 1)), ((2 2, 4 2, 4 4, 2 4, 2 "
      "2)))\"\n");
  EXPECT_EQ(island.refusal(), "nothing was thrown") << "a polygon inside of a hole";
  expect_text("a shape of type LINESTRING", Table("line,\"LINESTRING (0 0, 4 4)\"\n").refusal());
  expect_text("a feature without a shape", Table("none,POLYGON EMPTY\n").refusal());
  expect_text("expected a number", Table("text,\"POLYGON ((0 0, 4 x, 4 0, 0 0))\"\n").refusal());
  expect_text("area west is repeated", Table(std::string(kWest) + kWest).refusal());
  Table table(kWest);
  table.options.thresholds = {"pet>30"};
  expect_text("no output 'pet' in the run", table.refusal());
  expect_text("one of tmrt, utci", table.refusal());
  table.options.thresholds = {"utci"};
  expect_text("no bound 'utci'", table.refusal());
  table.options.thresholds = {};
  table.options.outputs = {"heat"};
  expect_text("no 'heat' in the run", table.refusal());
  table.options.outputs = {};
  table.options.id = "district";
  expect_text("no field 'district'", table.refusal());
  table.options.id = "name";
  table.options.groups = AreaGroups::land_cover;
  expect_text("a run that names no land cover", table.refusal());
}

TEST(AreaStatistics, FilesOfTheRunStayWhole) {
  Table table(kWest);
  WrittenRun run = warm_run();
  const fs::path points = table.folder / "points.csv", series = table.folder / "run/poi.csv";
  run.places = {{"poi", points}};
  for (const fs::path& file : {points, series}) write_file(file, "id,x,y\n");
  run.write(table.folder / "run");
  for (const fs::path& file : {points, series}) {
    table.options.file = file;
    EXPECT_THROW(area_statistics(table.options), InputError);
    EXPECT_EQ(fs::file_size(file), 7u);
  }
}

TEST(AreaStatistics, ReadsGeoJson) {
  Table table(kWest);
  table.options.areas = table.folder / "areas.geojson";
  table.options.outputs = {"tmrt"};
  write_file(table.options.areas,
             R"({"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"id": 7},
 "geometry": {"type": "Polygon", "coordinates": [[[0,0],[4,0],[4,4],[0,4],[0,0]],[[1,1],[1,2],[2,2],[2,1],[1,1]]]}}]})");
  const AreaStatisticsResult result = area_statistics(table.options);
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_EQ(result.rows[0].area, "7");
  EXPECT_EQ(result.rows[0].m2, 15);
  EXPECT_NEAR(result.rows[0].mean, (2 * 8 + 3 * 7) / 15.0, 1e-9) << "the hole is in the lower row";
  expect_text("\"area\":\"7\"", to_json(result));
  table.options.layer = "trees";
  fs::remove(table.options.file);
  expect_text("no layer 'trees'", table.refusal());
}

// A GeoPackage of one layer needs no name of it, one of two does; values and shapes come back.
TEST(AreaShapes, LayersOfAGeoPackage) {
  if (!io::gdal_unavailable_reason().empty()) GTEST_SKIP() << io::gdal_unavailable_reason();
  const TemporaryFolder folder;
  const io::MapRing square = {{1, 2}, {4, 2}, {4, 6}, {1, 6}};
  const auto layer = [&](const char* name, double value) {
    return io::FeatureLayer{
        name,
        io::Feature::Kind::area,
        {{square}},
        {{"people", std::vector<double>{value}}, {"about", std::vector<std::string>{name}}}};
  };
  const std::string crs = io::crs_from_epsg(3006);
  io::write_geopackage(folder / "one.gpkg", crs, std::vector{layer("yards", 7.5)});
  io::write_geopackage(folder / "two.gpkg", crs, std::vector{layer("yards", 7.5), layer("parks", 9)});
  const auto read = [&](const char* file, const char* name) {
    return io::read_ogr_features(folder / file, {name, ""});
  };
  for (const io::FeatureFile& file :
       {read("one.gpkg", ""), read("one.gpkg", "yards"), read("two.gpkg", "yards")}) {
    ASSERT_EQ(file.features.size(), 1u);
    EXPECT_EQ(*file.features[0].field("people"), "7.5");
    EXPECT_EQ(*file.features[0].field("about"), "yards");
    double area = 0;
    for (const io::MapRing& ring : file.features[0].rings)
      for (size_t k = 0; k < ring.size(); ++k) {
        const io::MapPoint &a = ring[k], &b = ring[(k + 1) % ring.size()];
        area += (a.x * b.y - b.x * a.y) / 2;
      }
    EXPECT_NEAR(std::abs(area), 12, 1e-12);
  }
  EXPECT_EQ(*read("two.gpkg", "parks").features.at(0).field("people"), "9");
  expect_text("2 layers", lockstep::test::refusal([&] { read("two.gpkg", ""); }));
  expect_text("no layer 'streets'", lockstep::test::refusal([&] { read("one.gpkg", "streets"); }));
}

TEST(AreaStatistics, AreasInTheSystemThatTheyDeclare) {
  if (!io::gdal_unavailable_reason().empty()) GTEST_SKIP() << io::gdal_unavailable_reason();
  io::RasterGrid grid = map_grid();
  grid.crs_wkt = io::crs_from_epsg(3006);
  const auto corner = [&](const std::string& crs, const std::string& option) {
    const std::string text = R"({)" + crs + R"("type":"Point","coordinates":[1010,1990]})";
    return io::features_on(io::parse_geojson_features(text, "a"), grid, {"", option}, "a").at(0).rings[0][0];
  };
  const std::string named = R"("crs":{"properties":{"name":"EPSG:3006"}},)";
  for (const auto& [crs, option] : {std::pair("", ""), {"", "EPSG:3006"}, {named.c_str(), "EPSG:3006"}}) {
    EXPECT_EQ(corner(crs, option).x, 1010) << crs << option;
    EXPECT_EQ(corner(crs, option).y, 1990) << crs << option;
  }
  EXPECT_GT(std::abs(corner("", "EPSG:3007").x - 1010), 100)
      << "numbers that are no degrees are the option's";
  expect_text("it declares another CRS than EPSG:3007 [a]",
              lockstep::test::refusal([&] { corner(named, "EPSG:3007"); }));
}

}  // namespace
}  // namespace lockstep::urban
