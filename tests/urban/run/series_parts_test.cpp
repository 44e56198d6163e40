// The parts of a run hour by hour: parameter files, points, summaries, agreement with measurements.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <numbers>

#include "core/refusal.hpp"
#include "core/temporary_folder.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "io/rasters/netcdf/grid_series.hpp"
#include "io/rasters/netcdf/netcdf_api.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"
#include "urban/published/athens.hpp"
#include "urban/series/inputs/measured.hpp"
#include "urban/series/outputs/points.hpp"
#include "urban/series/outputs/summary.hpp"
#include "urban/weather/parameters.hpp"

namespace lockstep::urban {
namespace {

using test::refusal;

void expect_part(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

const std::string kParameters = R"({
  "Code": {"Value": {"Grass": 5, "Asphalt": 1, "Walls": 99, "Brick_wall": 100}},
  "Albedo": {"Effective": {"Value": {"Grass": 0.16, "Asphalt": 0.18, "Walls": 0.25}}},
  "Emissivity": {"Value": {"Grass": 0.94, "Asphalt": 0.95, "Walls": 0.9, "Brick_wall": 0.9}},
  "TmaxLST": {"Value": {"Grass": 14.0, "Asphalt": 15.0, "Walls": 15.0, "Brick_wall": -999.0}},
  "Ts_deg": {"Value": {"Grass": 0.21, "Asphalt": 0.58, "Walls": 0.37}},
  "Tstart": {"Value": {"Grass": -3.38, "Asphalt": -9.78, "Walls": -3.41}},
  "Tmrt_params": {"Value": {"absK": 0.71, "absL": 0.96, "posture": "Sitting"}},
  "PET_settings": {"Value": {"Age": 40, "Weight": 70.0, "Height": 175, "Sex": "Female", "Activity": 90.0, "clo": 0.8}},
  "Wind_Height": {"Value": {"magl": 4.0}},
  "Tree_settings": {"Value": {"Transmissivity": 0.05, "Trunk_ratio": 0.3, "First_day_leaf": 100, "Last_day_leaf": 290}}
})";

TEST(Parameters, OfThePublishedFormat) {
  const ModelParameters p = parse_parameters(kParameters, "p.json");
  ASSERT_EQ(p.land_cover.size(), 2u);
  EXPECT_EQ(p.land_cover[0].code, 1);
  EXPECT_EQ(p.land_cover[1].albedo, 0.16);
  EXPECT_EQ(p.land_cover[1].tgk, 0.21);
  EXPECT_EQ(p.land_cover[1].tmax_h, 14);
  EXPECT_EQ(p.wall.albedo, 0.25);
  EXPECT_EQ(p.wind_height_m, 4);
  EXPECT_EQ(p.person.height_m, 1.75);
  EXPECT_EQ(p.person.sex, Sex::female);
  EXPECT_EQ(p.person.age_years, 40);
  EXPECT_EQ(p.person.mass_kg, 70);
  EXPECT_EQ(p.person.activity_w, 90);
  EXPECT_EQ(p.person.clothing_clo, 0.8);
  EXPECT_EQ(p.trunk_ratio, 0.3);
  EXPECT_EQ(p.land_cover[1].emissivity, 0.94);
  EXPECT_EQ(p.land_cover[1].tstart_k, -3.38);
  RadiationOptions options;
  p.apply(options);
  EXPECT_EQ(options.constants.absorption_short, 0.71);
  EXPECT_EQ(options.constants.leaf_on, 0.05);
  EXPECT_EQ(options.constants.leaf_last_day, 290);
  EXPECT_EQ(options.posture, Posture::sitting);
  EXPECT_EQ(p.class_table(), "1 Asphalt, 5 Grass");
}

TEST(Parameters, WhatIsRefused) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kParameters;
    text.replace(text.find(from), from.size(), to);
    return refusal([&] { parse_parameters(text, "p.json"); });
  };
  expect_part("p.json", with("\"absK\": 0.71", "\"absK\": 7"));
  expect_part("Tmrt_params.Value.absK is 7", with("\"absK\": 0.71", "\"absK\": 7"));
  expect_part("posture", with("Sitting", "Lying"));
  expect_part("Code.Value.Asphalt",
              with("\"Asphalt\": 1,", "\"Asphalt\": 5,") + with("\"Asphalt\": 1,", "\"Asphalt\": \"x\","));
  expect_part("Ts_deg.Value.Grass",
              with("\"Ts_deg\": {\"Value\": {\"Grass\": 0.21,", "\"Ts_deg\": {\"Value\": {"));
  // Numbers at their limits and just beyond.
  struct Limits {
    const char *name, *from;
    std::vector<const char*> good, bad;
  };
  for (const Limits& l : {Limits{"Age", "40", {"1", "120"}, {"0.5", "121"}},
                          {"Weight", "70.0", {"10", "300"}, {"9.5", "301"}},
                          {"Height", "175", {"50", "250"}, {"49.5", "251"}},
                          {"Activity", "90.0", {"0", "2000"}, {"-1", "2001"}},
                          {"clo", "0.8", {"0.1", "4"}, {"0.05", "4.1"}},
                          {"magl", "4.0", {"0.1", "500"}, {"0.05", "501"}},
                          {"Transmissivity", "0.05", {"0", "1"}, {"-0.1", "1.1"}},
                          {"Trunk_ratio", "0.3", {"0", "1"}, {"-0.1", "1.1"}},
                          {"First_day_leaf", "100", {"1", "366"}, {"0.5", "367"}},
                          {"absL", "0.96", {"0.01", "1"}, {"0", "1.01"}}}) {
    const std::string member = fmt::format("\"{}\": ", l.name);
    for (const char* good : l.good)
      EXPECT_EQ(with(member + l.from, member + good), "") << l.name << " " << good;
    for (const char* bad : l.bad)
      expect_part(fmt::format(".{} is {}", l.name, bad), with(member + l.from, member + bad));
  }
  expect_part("PET_settings.Value.Sex is 'Other'", with("Female", "Other"));
  expect_part("JSON", refusal([] { parse_parameters("[", "p.json"); }));
  expect_part("Code.Value", refusal([] { parse_parameters("{}", "p.json"); }));
}

TEST(Parameters, OfKronenhusetAreTheStandardOnes) {
  const auto file = testing::data_folder() / "urban/kronenhuset/parametersforsolweig_KR.json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no test data";
  const ModelParameters p = read_parameters(file);
  const auto standard = standard_land_cover();
  ASSERT_EQ(p.land_cover.size(), standard.size());
  for (size_t k = 0; k < standard.size(); ++k) {
    EXPECT_EQ(p.land_cover[k].code, standard[k].code);
    EXPECT_EQ(p.land_cover[k].albedo, standard[k].albedo);
    EXPECT_EQ(p.land_cover[k].tgk, standard[k].tgk);
    EXPECT_EQ(p.land_cover[k].tstart_k, standard[k].tstart_k);
    EXPECT_EQ(p.land_cover[k].tmax_h, standard[k].tmax_h);
  }
}

TEST(LandCover, UnknownClassesAreNamedWithTheTable) {
  CityInput input;
  input.dsm = Raster(2, 3, 5.0f);
  input.dsm.at(1, 2) = std::numeric_limits<float>::quiet_NaN();
  const City city = prepare_city(input);
  Raster cover(2, 3, 1.0f);
  cover.at(0, 1) = 100, cover.at(0, 2) = 101;  // materials of walls
  cover.at(1, 2) = std::numeric_limits<float>::quiet_NaN();
  const ModelParameters standard;
  EXPECT_EQ(land_cover_codes(cover, standard, city, "lc"), (std::vector<int32_t>{1, 2, 2, 1, 1, 0}));
  cover.at(1, 0) = 3;
  const std::string message = refusal([&] { land_cover_codes(cover, standard, city, "lc.tif"); });
  expect_part("land cover 3 at row 1, column 0 [lc.tif]", message);
  expect_part("one of 0 cobble, 1 asphalt, 2 roofs, 5 grass, 6 soil, 7 water", message);
  cover.at(1, 0) = std::numeric_limits<float>::quiet_NaN();
  expect_part("row 1, column 0", refusal([&] { land_cover_codes(cover, standard, city, "lc.tif"); }));
}

TEST(Points, CsvAndGeoJson) {
  io::RasterGrid grid;
  grid.rows = 20;
  grid.cols = 30;
  grid.has_transform = true;
  grid.transform = {1000, 2, 0, 5000, 0, -2};
  const auto points = parse_points("id;x;y\nsquare; 1001; 4999\n\"yard\";1059.9;4960.1\n", "poi", grid);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].id, "square");
  EXPECT_EQ(points[0].row, 0);
  EXPECT_EQ(points[0].col, 0);
  EXPECT_EQ(points[1].row, 19);
  EXPECT_EQ(points[1].col, 29);
  const auto json = parse_points(
      R"({"type":"Feature","geometry":{"type":"Point","coordinates":[1010.5,4990]},"properties":{"name":"x"}})",
      "poi", grid);
  EXPECT_EQ(json.at(0).id, "x");
  EXPECT_EQ(json.at(0).col, 5);
  const auto bad = [&](const std::string& text) { return refusal([&] { parse_points(text, "poi", grid); }); };
  expect_part("point out (999, 4999) lies outside the raster [poi:2]", bad("id,x,y\nout,999,4999\n"));
  expect_part("x from 1000 to 1060, y from 4960 to 5000", bad("id,x,y\nout,999,4999\n"));
  expect_part("[poi:3]", bad("id,x,y\na,1001,4999\na,1001,4999\n"));
  expect_part("[poi:2]", bad("id,x,y\na,east,4999\n"));
  expect_part("[poi:1]", bad("id,east\na,1\n"));
  expect_part("no points", bad("id,x,y\n"));
  expect_part("a point without id [poi:2]", bad("id,x,y\n,1001,4999\n"));
  expect_part("2 fields [poi:2]", bad("id,x,y\na,1001\n"));
  // The corners of the raster, 30 columns and 20 rows of 2 m from (1000, 5000) on: its right and lower edges are outside.
  for (const char* inside : {"1000,5000", "1059.999,4960.001"})
    EXPECT_EQ(parse_points(fmt::format("x,y\n{}\n", inside), "poi", grid).at(0).id, "1") << inside;
  for (const char* outside : {"999.999,4990", "1060,4990", "1010,5000.001", "1010,4960"})
    expect_part("lies outside the raster", bad(fmt::format("x,y\n{}\n", outside)));
  for (const char* far : {"lat,lon\n90.1,12\n", "lat,lon\n-90.1,12\n"}) expect_part("lat is '", bad(far));
  for (const char* far : {"lat,lon\n57,180.1\n", "lat,lon\n57,-180.1\n"}) expect_part("lon is '", bad(far));
  expect_part("has no coordinate system", bad("id,lat,lon\na,57,12\n"));
  expect_part("not a point", bad(R"({"type":"Feature","geometry":{"type":"LineString","coordinates":[]}})"));
}

TEST(Points, DegreesThroughTheProjection) {
  if (!io::gdal_unavailable_reason().empty()) GTEST_SKIP() << io::gdal_unavailable_reason();
  io::RasterGrid grid;
  grid.rows = grid.cols = 100;
  grid.has_transform = true;
  grid.transform = {147720, 1, 0, 6398780, 0, -1};
  grid.crs_wkt = io::crs_from_epsg(3007);
  const io::LonLat place = io::to_lon_lat(grid, 147750.5, 6398700.5);
  const auto points =
      parse_points(fmt::format("id,lat,lon\na,{:.9f},{:.9f}\n", place.lat, place.lon), "poi", grid);
  EXPECT_NEAR(points[0].x, 147750.5, 0.01);
  EXPECT_NEAR(points[0].y, 6398700.5, 0.01);
  EXPECT_EQ(points[0].row, 79);
}

/// The standard says degrees; its forerunner lets a file name its system, which many still do.
TEST(Points, GeoJsonInTheSystemThatItNames) {
  if (!io::gdal_unavailable_reason().empty()) GTEST_SKIP() << io::gdal_unavailable_reason();
  io::RasterGrid grid;
  grid.rows = grid.cols = 100;
  grid.has_transform = true;
  grid.transform = {319000, 1, 0, 6400000, 0, -1};
  grid.crs_wkt = io::crs_from_epsg(3006);
  const io::LonLat place = io::to_lon_lat(grid, 319030.5, 6399920.5);
  const auto file = [](const std::string& crs, double x, double y) {
    return fmt::format(R"({{{} "type":"Point","coordinates":[{},{}]}})", crs, x, y);
  };
  const auto named = [](const std::string& name) {
    return R"("crs":{"type":"name","properties":{"name":")" + name + R"("}},)";
  };
  // The same place in another zone, whose numbers are inside of no raster of this one.
  io::RasterGrid zone = grid;
  zone.crs_wkt = io::crs_from_epsg(32632);
  double x = 670000, y = 6399000;
  for (int k = 0; k < 9; ++k) {  // fixed-point steps: the zones' axes are almost parallel
    const io::LonLat at = io::to_lon_lat(zone, x, y);
    x += (place.lon - at.lon) * 111'000 * std::cos(place.lat * std::numbers::pi / 180);
    y += (place.lat - at.lat) * 111'000;
  }
  for (const std::string& text :
       {file("", place.lon, place.lat), file("", 319030.5, 6399920.5),
        file(R"("crs":null,)", place.lon, place.lat),
        file(named("urn:ogc:def:crs:OGC:1.3:CRS84"), place.lon, place.lat),
        file(named("urn:ogc:def:crs:EPSG::3006"), 319030.5, 6399920.5), file(named("EPSG:32632"), x, y)}) {
    const auto points = parse_points(text, "poi", grid);
    ASSERT_EQ(points.size(), 1u);
    EXPECT_NEAR(points[0].x, 319030.5, 0.05) << text;
    EXPECT_NEAR(points[0].y, 6399920.5, 0.05) << text;
    EXPECT_EQ(points[0].row, 79);
  }
  const auto bad = [&](const std::string& text) { return refusal([&] { parse_points(text, "poi", grid); }); };
  expect_part("crs is a string [poi]", bad(file(R"("crs":"EPSG:3006",)", 319030.5, 6399920.5)));
  expect_part("EPSG:999999 is not understood", bad(file(named("EPSG:999999"), 1, 2)));
  expect_part("lat is '91' [poi:2]: expected degrees from -90 to 90", bad("id,lat,lon\na,91,12\n"));
}

TEST(Agreement, ByHand) {
  const Agreement a = agreement_of({1, 2, 4}, {1, 3, 2});
  EXPECT_EQ(a.n, 3);
  EXPECT_NEAR(a.rmse, std::sqrt(5.0 / 3), 1e-12);
  EXPECT_NEAR(a.mbe, 1.0 / 3, 1e-12);
  // Means 7/3 and 2: covariance 1, variances 42/9 and 2.
  EXPECT_NEAR(a.r2, 1.0 / (42.0 / 9 * 2), 1e-12);
  // |c - 2| + |m - 2|: 2, 1, 2.
  EXPECT_NEAR(a.d, 1 - 5.0 / 9, 1e-12);
  const Agreement same = agreement_of({1, 2, 4}, {1, 2, 4});
  EXPECT_EQ(same.rmse, 0);
  EXPECT_NEAR(same.r2, 1, 1e-12);
  EXPECT_EQ(same.d, 1);
}

TEST(Measured, AQuantityHasOneColumn) {
  for (const char* head : {"hour,Kn,Kn\n", "hour,Kn,knorth\n", "hour,x,x\n"})
    EXPECT_THROW(parse_measured(std::string(head) + "1,2,3\n", "a.csv", 0), InputError) << head;
}

// The end of summer time within a file: one clock for all rows would be an hour off in a part of them.
TEST(Measured, RowsHaveOneOffset) {
  const auto parse = [](const char* first, const char* second) {
    return parse_measured(
        fmt::format("time,Tmrt\n2005-10-30T01:00{},20\n2005-10-30T04:00{},21\n", first, second), "m", 0);
  };
  EXPECT_EQ(parse("+02:00", "+02:00").utc_offset_h, 2);
  EXPECT_FALSE(parse("", "").utc_offset_h);
  expect_part("[m:3]", refusal([&] { parse("+02:00", "+01:00"); }));
  expect_part("another offset in '2005-10-30T04:00'", refusal([&] { parse("Z", ""); }));
}

TEST(Measured, SidesBecomeTheirMean) {
  const io::CivilMinutes noon = io::civil_minutes({2005, 10, 7, 12, 7});
  const MeasuredTable t = parse_measured("hour,Kn,Ke,Ks,Kw,tmrt\n7,1,2,3,6,5\n8,,2,3,6,-999\n", "m", noon);
  EXPECT_EQ(io::civil_text(t.times[1]), "2005-10-07T08:00");
  EXPECT_EQ(t.columns.at("Kside")[0], 3);
  EXPECT_TRUE(std::isnan(t.columns.at("Kside")[1]));
  EXPECT_EQ(t.columns.at("Tmrt")[0], 5);
  EXPECT_TRUE(std::isnan(t.columns.at("Tmrt")[1]));
  expect_part("[m:2]", refusal([&] { parse_measured("hour,Tmrt\n30,1\n", "m", noon); }));
  expect_part("time or hour", refusal([&] { parse_measured("t,Tmrt\n30,1\n", "m", noon); }));
  const MeasuredTable day = parse_measured("Lup,hour,Lside_north\n1,0,2\n3,1.5,4\nnan,24,5\n", "m", noon);
  for (const auto& [k, time] :
       {std::pair(0u, "2005-10-07T00:00"), {1u, "2005-10-07T01:30"}, {2u, "2005-10-08T00:00"}})
    EXPECT_EQ(io::civil_text(day.times[k]), time);
  EXPECT_EQ(day.step_min, 90);
  EXPECT_EQ(day.columns.at("Ln"), (std::vector<double>{2, 4, 5}));
  EXPECT_EQ(day.columns.count("Lside"), 0u) << "of one side";
  EXPECT_TRUE(std::isnan(day.columns.at("Lup")[2]));
  const auto refused = [&](const char* text) { return refusal([&] { parse_measured(text, "m", noon); }); };
  for (const char* hour : {"-0.1", "24.1", "", "noon"})
    expect_part("[m:2]", refused(fmt::format("hour,Tmrt\n{},1\n", hour).c_str()));
  expect_part("Tmrt is 'hot' [m:3]", refused("hour,Tmrt\n1,1\n2,hot\n"));
  expect_part("3 fields [m:2]", refused("hour,Tmrt\n1,1,1\n"));
  expect_part("measurements out of order", refused("hour,Tmrt\n2,1\n1,1\n"));
  expect_part("measurements out of order", refused("hour,Tmrt\n2,1\n2,1\n"));
  expect_part("no rows of measurements", refused("hour,Tmrt\n"));
  expect_part("an empty file", refused(""));
}

TEST(Summary, HoursMeansAndHighest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  SeriesSummary summary({SeriesOutput::utci, SeriesOutput::shadow}, 2, 0.5);
  summary.add({{30, nan}, {1, nan}});
  summary.add({{20, nan}, {0.03f, nan}});
  summary.add({{40, nan}, {1, nan}});
  const auto grids = summary.grids();
  const auto value = [&](const std::string& name) {
    for (const SummaryGrid& grid : grids)
      if (grid.name == name) {
        EXPECT_TRUE(std::isnan(grid.values[1])) << name;
        return grid.values[0];
      }
    ADD_FAILURE() << "no grid " << name;
    return nan;
  };
  EXPECT_EQ(value("utci_mean"), 30);
  EXPECT_EQ(value("utci_max"), 40);
  EXPECT_EQ(value("utci_hours_above_26"), 1.0f);
  EXPECT_EQ(value("utci_hours_above_32"), 0.5f);
  EXPECT_EQ(value("utci_hours_above_46"), 0.0f);
  EXPECT_EQ(value("sun_hours"), 1.0f);
}

TEST(Summary, HasHoursBeyondOwnBounds) {
  SeriesOptions options;
  options.outputs = {SeriesOutput::utci, SeriesOutput::kdown};
  options.thresholds = {"utci>35", "utci>38", "utci<9", "kdown>=500", "kdown<=500"};
  SeriesSummary summary(options.outputs, 2, 0.5, 1, own_bounds(options));
  summary.add({{36, 8}, {500, 499}});
  summary.add({{35, 40}, {501, std::nanf("")}});
  std::map<std::string, SummaryGrid> grids;
  for (const SummaryGrid& grid : summary.grids())
    EXPECT_TRUE(grids.emplace(grid.name, grid).second) << grid.name;
  EXPECT_EQ(grids.at("utci_hours_above_35").values, (std::vector<float>{0.5, 0.5}));
  EXPECT_EQ(grids.at("utci_hours_above_38").values, (std::vector<float>{0, 0.5}));
  EXPECT_EQ(grids.at("utci_hours_below_9").values, (std::vector<float>{0, 0.5}));
  EXPECT_EQ(grids.at("kdown_hours_at_least_500").values[0], 1);
  EXPECT_EQ(grids.at("kdown_hours_at_most_500").values[0], 0.5);
  EXPECT_TRUE(std::isnan(grids.at("kdown_hours_at_least_500").values[1]));
  EXPECT_EQ(grids.at("utci_hours_below_9").title, "Universal thermal climate index, hours below 9 °C");
  EXPECT_EQ(grids.at("kdown_hours_at_least_500").title, "Shortwave from above, hours of at least 500 W/m²");
  options.thresholds = {"pet>35"};
  EXPECT_THROW(own_bounds(options), OptionError);
}

TEST(Summary, HoursOfTheDayHoldWholeIntervals) {
  const HourWindow window{11, 17};
  EXPECT_FALSE(window.holds(11 * 60, 60));
  EXPECT_TRUE(window.holds(12 * 60, 60));
  EXPECT_TRUE(window.holds(17 * 60, 60));
  EXPECT_FALSE(window.holds(17 * 60 + 30, 60));
  EXPECT_TRUE((HourWindow{23, 24}).holds(24 * 60, 60))
      << "an interval that ends at midnight is of the day before";
}

TEST(Summary, HoursOfSunOfStepsInParts) {
  SeriesSummary summary({SeriesOutput::shadow}, 3, 1, 6);
  // Half an hour of sun; under a plant that lets 0.03 through; two parts of sun, four under the plant.
  summary.add({{0.5f, 0.03f, static_cast<float>((2 + 4 * 0.03) / 6)}});
  for (const SummaryGrid& grid : summary.grids())
    if (grid.name == "sun_hours") {
      EXPECT_NEAR(grid.values[0], 0.5, 1e-6);
      EXPECT_EQ(grid.values[1], 0);
      EXPECT_NEAR(grid.values[2], 2 / 6.0, 1e-6);
    }
}

// Chunks are compressed by all threads and written past netCDF where it brings an HDF5 that can.
TEST(GridSeriesFile, Hdf5IsFoundWhereNetcdfBringsIt) {
  if (!io::netcdf_unavailable_reason().empty()) GTEST_SKIP() << "netCDF is absent";
  const io::NetcdfApi& api = io::require_netcdf("a test");
  EXPECT_EQ(api.hdf5.has_value(), api.library.symbol("H5Dwrite_chunk") != nullptr);
}

TEST(GridSeriesFile, HoldsEveryGridAtItsPlace) {
  if (!io::netcdf_unavailable_reason().empty()) GTEST_SKIP() << "netCDF is absent";
  io::SeriesDescription d;
  d.grid.rows = 300;
  d.grid.cols = 517;
  d.grid.place(2);
  d.times = {0, 60, 120};
  d.variables = {{"a", "first", "1", ""}, {"b", "second", "1", ""}};
  const auto value = [](size_t variable, size_t step, size_t p) {
    if (p % 97 == 5) return std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(p) * 0.25f + static_cast<float>(1000 * step + 7 * variable);
  };
  const size_t pixels = 300 * 517;
  const lockstep::test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "series.nc";
  {
    io::GridSeriesWriter writer(file, d);
    for (const auto& [variable, step] : {std::pair{1, 2}, {0, 1}, {0, 0}, {1, 0}, {0, 2}, {1, 1}}) {
      std::vector<float> grid(pixels);
      for (size_t p = 0; p < pixels; ++p) grid[p] = value(size_t(variable), size_t(step), p);
      if (step == 1) {
        writer.write(size_t(variable), 1, 256, 44, &grid[256 * 517]);
        writer.write(size_t(variable), 1, 0, 256, grid.data());
      } else {
        writer.write(size_t(variable), size_t(step), 0, 300, grid.data());
      }
    }
    EXPECT_FALSE(std::filesystem::exists(file));
    writer.commit();
  }
  for (const size_t variable : {0u, 1u}) {
    const char* name = variable ? "b" : "a";
    const Array series = io::find_array(io::read_netcdf(file, {name}), name, "the file");
    const auto values = series.as<double>();
    ASSERT_EQ(values.size(), 3 * pixels);
    for (size_t k = 0; k < values.size(); ++k) {
      const float expected = value(variable, k / pixels, k % pixels);
      if (std::isnan(expected) ? std::isnan(values[k]) : values[k] == expected) continue;
      FAIL() << "variable " << variable << ", value " << k << ": " << values[k];
    }
  }
}

}  // namespace
}  // namespace lockstep::urban
