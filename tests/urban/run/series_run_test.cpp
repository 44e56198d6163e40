// Whole runs hour by hour from files to files, without the program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <numbers>

#include "core/files/atomic_file.hpp"
#include "core/temporary_folder.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "io/era5_files.hpp"
#include "io/rasters/netcdf/netcdf_api.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/report.hpp"
#include "lockstep/urban/series.hpp"
#include "urban/published/athens.hpp"
#include "urban/run/netcdf_text.hpp"
#include "urban/run/series_case.hpp"
#include "urban/run/victim.hpp"
#include "urban/weather/solar.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
using lockstep::test::TemporaryFolder;
using testing::clear_day;
using Case = testing::SeriesCase;
constexpr int64_t kSide = testing::kCaseSide;

bool has_cpu() {
  try {
    Context context(ContextOptions{.device = "cpu"});
    return true;
  } catch (const UnsupportedError&) { return false; }
}
#define NEEDS_CPU() \
  if (!has_cpu()) GTEST_SKIP() << "the interpreter alone is too slow for this"

std::string refusal(const SeriesOptions& options) {
  try {
    Context context(ContextOptions{.device = "cpu,interp"});
    run(context, options);
  } catch (const InputError& error) { return error.what(); }
  return "nothing was thrown";
}
void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

double mean(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v);
  return sum / static_cast<double>(values.size());
}

TEST(SeriesRun, ADayOfASmallCity) {
  NEEDS_CPU();
  Case c;
  const bool netcdf = io::netcdf_unavailable_reason().empty();
  if (netcdf) c.options.formats.push_back(SeriesFormat::nc);  // summaries stay .npy
  c.options.outputs.push_back(SeriesOutput::kdown);
  c.options.outputs.push_back(SeriesOutput::lside_north);
  c.options.points = c.folder / "poi.csv";
  write_file(c.options.points, "id,x,y\na,10.5,30.5\n\"b, south\",40.5,3.5\n");
  const SeriesResult result = c.compute();
  EXPECT_EQ(result.steps, 24);
  EXPECT_NE(to_json(result).find("\"step_minutes\":60"), std::string::npos);
  EXPECT_GT(result.day_steps, 15);
  const std::vector<float> noon = c.read("tmrt/tmrt_20150621T1300.npy"),
                           night = c.read("tmrt/tmrt_20150621T0200.npy");
  EXPECT_GT(*std::max_element(noon.begin(), noon.end()), 45);
  EXPECT_GT(mean(noon), mean(night) + 10);
  for (const float v : c.read("shadow/shadow_20150621T0100.npy")) EXPECT_EQ(v, 0);
  const std::vector<float> hours = c.read("summary/sun_hours.npy");
  EXPECT_GT(*std::max_element(hours.begin(), hours.end()), 8);
  EXPECT_LE(*std::max_element(hours.begin(), hours.end()), static_cast<float>(result.day_steps));
  std::vector<float> highest(kSide * kSide, -99.0f);
  for (const std::string& time : result.times) {
    std::string stamp = time;
    std::erase_if(stamp, [](char x) { return x == '-' || x == ':'; });
    const auto grid = c.read("utci/utci_" + stamp + ".npy");
    for (size_t p = 0; p < highest.size(); ++p) highest[p] = std::max(highest[p], grid[p]);
  }
  EXPECT_EQ(c.read("summary/utci_max.npy"), highest);
  // A row a point and step; the values of the points' pixels.
  const std::string table = io::read_text_file(c.options.folder / "poi.csv");
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 2 * 24);
  EXPECT_TRUE(table.starts_with("id,time,Ta,RH,wind,")) << table.substr(0, 200);
  expect_in("\n\"b, south\",2015-06-21T01:00,", table);
  EXPECT_FLOAT_EQ(static_cast<float>(result.point_values.at("Tmrt")[12]), noon[17 * kSide + 10]);
  EXPECT_FLOAT_EQ(static_cast<float>(result.point_values.at("Ln")[12]),
                  c.read("lside_north/lside_north_20150621T1300.npy")[17 * kSide + 10]);
  EXPECT_GT(result.point_values.at("Ks")[12], result.point_values.at("Kn")[12]);
  for (const char* stage : {"shadow", "gvf", "radiation", "sky", "comfort"})
    EXPECT_GT(result.metrics.stage_time_ms.at(stage), 0) << stage;
  const auto document = nlohmann::json::parse(io::read_text_file(c.options.folder / "run.json"));
  EXPECT_EQ(document["steps"], 24);
  EXPECT_EQ(document["from"], "2015-06-21T01:00");
  EXPECT_FALSE(fs::exists(c.options.folder / ".tiles"));
  if (!netcdf) return;
  const fs::path file = c.options.folder / "run.nc";
  EXPECT_EQ(test::netcdf_text(file, nullptr, "Conventions"), "CF-1.8");
  EXPECT_EQ(test::netcdf_text(file, "tmrt", "units"), "degC");
  EXPECT_EQ(test::netcdf_text(file, "time", "units"), "minutes since 1970-01-01 00:00:00 +01:00");
  EXPECT_EQ(test::netcdf_text(file, "time", "time_zone"), "UTC+01:00");
  const auto series = io::read_netcdf(file, {"time", "y", "tmrt"});
  EXPECT_EQ(io::find_array(series, "time", "the file").size(0), 24);
  EXPECT_EQ(io::find_array(series, "y", "the file").at<double>(0), kSide - 0.5);
  const Array grid = io::find_array(series, "tmrt", "the file")[12].to(Storage::f32);
  EXPECT_TRUE(std::ranges::equal(grid.as<float>(), noon));
}

TEST(SeriesRun, TilesChangeNothing) {
  NEEDS_CPU();
  Case c(14);
  c.options.from = "2015-06-21T09:00";
  c.options.outputs = {SeriesOutput::tmrt, SeriesOutput::shadow, SeriesOutput::gvf, SeriesOutput::lup};
  c.options.points = c.folder / "poi.csv";
  write_file(c.options.points, "id,x,y\na,10.5,30.5\nb,40.5,3.5\n");
  const SeriesResult whole = c.compute();
  EXPECT_EQ(whole.tiles.tiles, 1);
  Case tiled(14);
  tiled.options.from = c.options.from;
  tiled.options.outputs = c.options.outputs;
  tiled.options.points = c.options.points;
  tiled.options.tiles.side = 20;
  tiled.options.tiles.workers = 2;
  const SeriesResult result = tiled.compute();
  EXPECT_EQ(result.tiles.tiles, 9);
  EXPECT_LE(result.tiles.queue_depth_peak, 2);
  for (const std::string& time : whole.times) {
    std::string stamp = time;
    std::erase_if(stamp, [](char x) { return x == '-' || x == ':'; });
    for (const SeriesOutput output : c.options.outputs) {
      const std::string file = fmt::format("{0}/{0}_{1}.npy", name(output), stamp);
      EXPECT_EQ(c.read(file), tiled.read(file)) << file;
    }
  }
  for (const char* column : {"Tmrt", "PET", "svf", "Lside", "Ke", "Lw"})
    EXPECT_EQ(whole.point_values.at(column), result.point_values.at(column)) << column;
  EXPECT_EQ(c.read("summary/tmrt_mean.npy"), tiled.read("summary/tmrt_mean.npy"));
}

/// Rows assembled by bands, over the edges of tiles, hold what whole grids hold.
TEST(SeriesRun, BandsOfRowsChangeNothing) {
  NEEDS_CPU();
  if (!io::netcdf_unavailable_reason().empty()) GTEST_SKIP() << "netCDF is absent";
  Case c(13);
  SampleRunOptions sample;
  sample.output = {c.folder / "city", GridFormat::npy, false};
  sample.rows = 300;
  sample.cols = 32;
  run(sample);
  c.options.from = "2015-06-21T12:00";
  c.options.formats = {SeriesFormat::nc};
  c.options.points = c.folder / "poi.csv";
  write_file(c.options.points, "id,x,y\na,3.5,30.5\nb,20.5,290.5\n");
  const SeriesResult whole = c.compute();
  SeriesOptions options = c.options;
  options.folder = c.folder / "bands";
  options.rows_at_a_time = 256;
  options.tiles.side = 96;
  Context context(ContextOptions{.device = "cpu"});
  const SeriesResult bands = run(context, options);
  EXPECT_EQ(bands.tiles.tiles, 4);
  const auto values_of = [](const SeriesResult& r, const std::string& output) {
    return io::find_array(io::read_netcdf(r.netcdf, {output}), output, "the file");
  };
  for (const char* output : {"tmrt", "shadow"})
    EXPECT_TRUE(
        std::ranges::equal(values_of(whole, output).as<double>(), values_of(bands, output).as<double>()))
        << output;
  for (const char* column : {"Tmrt", "PET", "svf", "Lside", "Ke", "Lw"})
    EXPECT_EQ(whole.point_values.at(column), bands.point_values.at(column)) << column;
  const auto cells = [](const fs::path& file) {
    std::vector<float> values(300 * 32);
    io::RasterReader::open(file)->read(0, 0, 300, 32, values.data());
    return values;
  };
  ASSERT_EQ(whole.outputs.size(), bands.outputs.size());
  for (size_t k = 0; k < whole.outputs.size(); ++k) {
    const OutputGrid &a = whole.outputs[k], &b = bands.outputs[k];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.maximum, b.maximum) << a.name;
    EXPECT_EQ(cells(a.file), cells(b.file)) << a.name;
  }
  options.rows_at_a_time = 100;
  EXPECT_THROW(run(context, options), InputError);
  EXPECT_TRUE(fs::exists(bands.netcdf));
}

// Means count the ground alone, unless roofs are requested; grids and the mask are the same either way.
TEST(SeriesRun, PeopleStandOnTheGround) {
  NEEDS_CPU();
  Case c;
  c.options.from = "2015-06-21T12:00";
  c.options.to = "2015-06-21T13:00";
  const SeriesResult ground = c.compute();
  const std::vector<float> mask = c.read("ground.npy"), tmrt = c.read("summary/tmrt_mean.npy");
  const auto heights = [&](const fs::path& file) {
    std::vector<float> values(kSide * kSide);
    io::RasterReader::open(file)->read(0, 0, kSide, kSide, values.data());
    return values;
  };
  const std::vector<float> dsm = heights(c.options.city.dsm), dem = heights(c.options.city.dem);
  double sum = 0, all = 0;
  int64_t count = 0;
  for (size_t p = 0; p < mask.size(); ++p) {
    const bool stands = dsm[p] - dem[p] < 2;
    EXPECT_EQ(mask[p], stands ? 1 : 0);
    all += static_cast<double>(tmrt[p]);
    if (stands) sum += static_cast<double>(tmrt[p]), ++count;
  }
  const double on_ground = sum / static_cast<double>(count), everywhere = all / (kSide * kSide);
  ASSERT_GT(std::abs(on_ground - everywhere), 0.1);
  const auto mean_of = [](const SeriesResult& result, const std::string& name) {
    for (const OutputGrid& grid : result.outputs)
      if (grid.name == name) return grid.mean;
    return std::nan("");
  };
  EXPECT_NEAR(mean_of(ground, "tmrt_mean"), on_ground, 1e-4);
  EXPECT_NEAR(mean_of(ground, "ground"), double(count) / (kSide * kSide), 1e-9);
  c.options.include_roofs = true;
  const SeriesResult roofs = c.compute();
  EXPECT_NEAR(mean_of(roofs, "tmrt_mean"), everywhere, 1e-4);
  EXPECT_EQ(c.read("ground.npy"), mask);
  EXPECT_EQ(c.read("summary/tmrt_mean.npy"), tmrt);
}

constexpr char kVictim[] = "LOCKSTEP_TEST_SERIES_VICTIM";  // "<pipe to write to> <folder of a Case>"

SeriesOptions tiled_options(const Case& c) {
  SeriesOptions options = c.options;
  options.from = "2015-06-21T11:00";
  options.outputs = {SeriesOutput::tmrt};
  options.tiles.side = 24;
  options.tiles.workers = 1;
  return options;
}

/// The run that is killed, a process of its own: stops in its third tile, says so, and waits for its end.
TEST(SeriesVictim, DISABLED_Run) {
  const auto victim = test::Victim::here(kVictim);
  if (!victim) GTEST_SKIP() << "run by SeriesRun.ResumesAfterAKill only";
  Case c(12);
  SeriesOptions options = tiled_options(c);
  options.folder = victim->folder;
  options.tiles.on_progress = [&](int64_t done, int64_t total) {
    if (2 * done > total) victim->wait_for_the_end();
  };
  Context context(ContextOptions{.device = "cpu"});
  run(context, options);
}

TEST(SeriesRun, ResumesAfterAKill) {
  NEEDS_CPU();
  Case c(12);
  const SeriesOptions options = tiled_options(c);
  fs::create_directories(options.folder);
  ASSERT_NO_FATAL_FAILURE(test::kill_victim(kVictim, "SeriesVictim.DISABLED_Run", options.folder));
  EXPECT_FALSE(fs::exists(options.folder / "run.json"));

  Context context(ContextOptions{.device = "cpu"});
  const SeriesResult resumed = run(context, options);
  EXPECT_EQ(resumed.tiles.tiles, 4);
  EXPECT_EQ(resumed.tiles.resumed, 2);
  EXPECT_FALSE(fs::exists(options.folder / ".tiles"));
  const std::vector<float> after = c.read("tmrt/tmrt_20150621T1200.npy");
  SeriesOptions fresh = options;
  fresh.tiles.side = 0;
  run(context, fresh);
  EXPECT_EQ(after, c.read("tmrt/tmrt_20150621T1200.npy"));
}

TEST(SeriesRun, PolarNightPolarDayAndTheSouth) {
  NEEDS_CPU();
  Case night(6, "2015-12-21", Site{78.2, 15.6, 0, 1});
  const SeriesResult dark = night.compute();
  EXPECT_EQ(dark.day_steps, 0);
  for (const float v : night.read("summary/sun_hours.npy")) EXPECT_EQ(v, 0);
  for (const float v : night.read("summary/tmrt_max.npy")) EXPECT_TRUE(std::isfinite(v));
  Case day(4, "2015-06-21", Site{78.2, 15.6, 0, 1});
  EXPECT_EQ(day.compute().day_steps, 4);
  for (const float v : day.read("summary/tmrt_mean.npy")) EXPECT_TRUE(std::isfinite(v));
  Case south(13, "2015-12-21", Site{-33.9, 18.4, 0, 2});
  south.options.from = "2015-12-21T12:00";
  EXPECT_EQ(south.compute().day_steps, 2);
  for (const float v : south.read("summary/tmrt_mean.npy")) EXPECT_TRUE(std::isfinite(v));
}

TEST(SeriesRun, ShortStepsHalfHoursTheTurnOfTheYearAndOnePixel) {
  NEEDS_CPU();
  Case c(1, "2015-06-21", Site{28.6, 77.2, 0, 5.5});
  c.options.outputs = {SeriesOutput::tmrt, SeriesOutput::pet};
  c.options.points = c.folder / "poi.csv";
  write_file(c.options.points, "id,x,y\na,0.5,0.5\n");
  const auto compute_with = [&](const std::string& rows) {
    write_file(c.options.weather, "time,Ta,RH,wind,Kglobal\n" + rows);
    return c.compute();
  };
  const SeriesResult tens = compute_with(
      "2015-06-21T12:10,35,40,2,850\n2015-06-21T12:20,35,40,2,850\n2015-06-21T12:30,35,40,2,850\n");
  for (size_t k = 0; k < 3; ++k) {
    const io::CivilMinutes time = io::parse_iso_time(tens.times[k])->minutes;
    EXPECT_DOUBLE_EQ(tens.point_values.at("sun_altitude")[k], sun_at(c.site, time, -5).altitude_deg);
    EXPECT_GT(tens.point_values.at("Tmrt")[k], 45);
  }
  const SeriesResult year =
      compute_with("2015-12-31T23:00,8,80,2,0\n2016-01-01T00:00,-45,80,2,0\n2016-01-01T01:00,7,80,2,0\n");
  EXPECT_EQ(year.day_steps, 0);
  for (const char* column : {"Tmrt", "PET", "Ln"})
    for (const double v : year.point_values.at(column)) EXPECT_TRUE(std::isfinite(v)) << column;
  io::RasterGrid one;
  one.rows = one.cols = 1;
  io::write_raster(c.folder / "one.npy", one, Array::of(std::vector<float>{5}, {1, 1}));
  c.options.city.dsm = c.folder / "one.npy";
  c.options.city.dem.clear();
  c.options.city.cdsm.clear();
  const SeriesResult alone = compute_with("2016-02-29T12:00,35,40,2,850\n");
  EXPECT_GT(alone.point_values.at("Tmrt")[0], 45);
  EXPECT_EQ(alone.point_values.at("svf")[0], 1);
}

TEST(SeriesRun, WhatIsRefusedNamesFileLineOrPixel) {
  Case c(3);
  const std::string weather = io::read_text_file(c.options.weather);
  const auto with = [&](const std::function<void(SeriesOptions&)>& change) {
    SeriesOptions options = c.options;
    change(options);
    return refusal(options);
  };
  const auto with_weather = [&](const std::string& text) {
    write_file(c.folder / "w.csv", text);
    return with([&](SeriesOptions& o) { o.weather = c.folder / "w.csv"; });
  };
  expect_in("w.csv:2]", with_weather("time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,99,50,2,600\n"));
  expect_in("w.csv:2]", with_weather("time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,20,0,2,600\n"));
  expect_in("w.csv:2]: expected above 0",
            with_weather("time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,20,100.5,2,600\n"));
  expect_in("w.csv:3]", with_weather("time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,20,50,2,600\n"
                                     "2015-06-21T11:00,20,50,2,600\n"));
  expect_in("is repeated", with_weather(weather + weather.substr(weather.rfind("2015"))));
  expect_in("below the horizon [", with_weather("time,Ta,RH,wind,Kglobal\n2015-12-21T01:00,2,50,2,300\n"));
  expect_in("no column Kglobal", with_weather("time,Ta,RH,wind\n2015-06-21T12:00,20,50,2\n"));
  expect_in("no wind", with_weather("time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,20,50,,600\n"));
  expect_in("no weather at 2016-01-01T00:00", with([](SeriesOptions& o) { o.from = "2016-01-01T00:00"; }));
  expect_in("[urban::SeriesOptions::from]", with([](SeriesOptions& o) { o.from = "yesterday"; }));
  expect_in("expected urban::SeriesOptions::utc_offset_h",
            with([](SeriesOptions& o) { o.utc_offset_h.reset(); }));
  expect_in("urban::SeriesOptions::latitude_deg and urban::SeriesOptions::longitude_deg",
            with([](SeriesOptions& o) { o.latitude_deg.reset(), o.longitude_deg.reset(); }));
  expect_in("point out", with([&](SeriesOptions& o) {
              write_file(c.folder / "far.csv", "id,x,y\nout,1000,5\n");
              o.points = c.folder / "far.csv";
            }));
  const auto with_cover = [&](int64_t rows, float value) {
    return with([&](SeriesOptions& o) {
      io::RasterGrid grid;
      grid.rows = rows;
      grid.cols = kSide;
      const std::vector<float> values(static_cast<size_t>(rows * kSide), value);
      io::write_raster(c.folder / "lc.npy", grid, Array::of(values, {rows, kSide}));
      o.land_cover = c.folder / "lc.npy";
    });
  };
  expect_in("lc.npy", with_cover(kSide - 1, 1));
  expect_in("land cover 4 at row 0, column 0", with_cover(kSide, 4));
  expect_in("urban::SeriesOptions::wall_aspect", with([](SeriesOptions& o) { o.wall_height = "x.npy"; }));
  expect_in("[urban::SeriesOptions::wind_height_m]", with([](SeriesOptions& o) { o.wind_height_m = 0; }));
  expect_in("no svf.tif or .npy", with([&](SeriesOptions& o) { o.svf_folder = c.folder / "city"; }));
  EXPECT_FALSE(fs::exists(c.options.folder / "run.json"));
}

TEST(SeriesRun, StoredViewFactorsGiveTheSame) {
  NEEDS_CPU();
  Case c(12);
  c.options.from = "2015-06-21T12:00";
  c.options.outputs = {SeriesOutput::tmrt};
  c.compute();
  const std::vector<float> computed = c.read("tmrt/tmrt_20150621T1200.npy");
  SkyRunOptions sky;
  sky.city = c.options.city;
  sky.output = {c.folder / "svf", GridFormat::npy, false};
  sky.sky.patches = SkyPatches::p145;
  sky.sky.keep_states = true;
  Context context(ContextOptions{.device = "cpu"});
  run(context, sky);
  c.options.svf_folder = c.folder / "svf";
  c.compute();
  EXPECT_EQ(computed, c.read("tmrt/tmrt_20150621T1200.npy"));
}

TEST(SeriesRun, AnHourDoesNotDependOnWhereTheRunBegins) {
  NEEDS_CPU();
  for (const double latitude : {57.7, 75.0}) {  // with a night, and without
    Case c(24, "2015-06-21", Site{latitude, 11.97, 0, 1});
    c.options.outputs = {SeriesOutput::tmrt, SeriesOutput::lup};
    c.compute();
    const std::vector<std::string> files = {"tmrt/tmrt_20150621T1600.npy", "lup/lup_20150621T1600.npy",
                                            "tmrt/tmrt_20150621T2300.npy"};
    std::vector<std::vector<float>> whole;
    for (const std::string& file : files) whole.push_back(c.read(file));
    for (const char* from : {"2015-06-21T16:00", "2015-06-21T23:00"}) {
      c.options.from = from;
      c.options.folder = c.folder / from;
      c.compute();
      for (size_t k = 0; k < files.size(); ++k)
        if (fs::exists(c.options.folder / files[k])) {
          EXPECT_EQ(c.read(files[k]), whole[k]) << latitude << " " << from << " " << files[k];
        }
    }
  }
}

TEST(SeriesRun, MeasurementsFartherApartThanStepsMeetTheirOwnHours) {
  NEEDS_CPU();
  Case c(12);
  c.options.from = "2015-06-21T08:00";
  c.options.outputs = {SeriesOutput::tmrt};
  c.options.points = c.folder / "poi.csv";
  write_file(c.options.points, "id,x,y\na,10.5,30.5\n");
  write_file(c.folder / "m.csv", "time,Tmrt,Keast\n2015-06-21 08:00:00,20,100\n2015-06-21 12:00:00,40,150\n");
  Context context(ContextOptions{.device = "cpu"});
  const ValidationResult result = validate(context, {c.options, c.folder / "m.csv", {}});
  ASSERT_EQ(result.variables.size(), 2u);
  EXPECT_EQ(result.variables[0].first, "Ke");
  for (const auto& [variable, agreement] : result.variables) EXPECT_EQ(agreement.n, 2) << variable;
}

// Gridded weather is in universal time, where nothing says otherwise; so are measurements without a clock of their own.
TEST(SeriesRun, MeasurementsAgainstARunOfEra5) {
  NEEDS_CPU();
  if (!io::netcdf_missing().empty()) GTEST_SKIP() << io::netcdf_missing();
  Case c(12);
  c.options.weather = c.folder / "era5.nc";
  io::write_day(c.options.weather, [](int hour) { return hour > 5 && hour < 17 ? 1e6 : 0; }, 57.7, 11.97);
  c.options.utc_offset_h = {};
  c.options.from = "2021-05-19T11:00";
  c.options.to = "2021-05-19T12:00";
  c.options.outputs = {SeriesOutput::tmrt};
  c.options.points = c.folder / "poi.csv";
  write_file(c.options.points, "id,x,y\na,10.5,30.5\n");
  write_file(c.folder / "m.csv", "time,Tmrt\n2021-05-19 11:00:00,20\n2021-05-19 12:00:00,40\n");
  Context context(ContextOptions{.device = "cpu"});
  const ValidationResult result = validate(context, {c.options, c.folder / "m.csv", {}});
  ASSERT_EQ(result.variables.size(), 1u);
  EXPECT_EQ(result.variables[0].second.n, 2);
}

TEST(SeriesRun, KronenhusetAgreesWithItsMeasurements) {
  NEEDS_CPU();
  const fs::path data = testing::data_folder() / "urban/kronenhuset";
  if (!fs::exists(data) || !io::gdal_unavailable_reason().empty()) GTEST_SKIP() << "no test data or no GDAL";
  TemporaryFolder folder;
  ValidationOptions v;
  v.series.city.dsm = data / "DSM_KR.tif";
  v.series.city.dem = data / "DEM_KR.tif";
  v.series.city.cdsm = data / "CDSM_KR.asc";
  v.series.land_cover = data / "landcover_KR.tif";
  v.series.parameters = data / "parametersforsolweig_KR.json";
  v.series.weather = data / "MetFile_Prepared.txt";
  v.series.utc_offset_h = 0;
  v.series.points = data / "poi.geojson";
  v.series.folder = folder / "out";
  v.series.outputs = {SeriesOutput::tmrt};
  v.series.formats = {SeriesFormat::npy};
  v.series.pictures = v.series.video = false;
  v.series.preset = Preset::corrected;
  v.measured = data / "measurements_kr.csv";
  v.measured_utc_offset_h = 1;  // two hours ahead, and hours are named by their start: docs/urban.md
  Context context(ContextOptions{.device = "cpu"});
  const ValidationResult result = validate(context, v);
  for (const auto& [variable, a] : result.variables)
    fmt::print("{:<6} n {} RMSE {:.2f} MBE {:.2f} R2 {:.3f} d {:.3f}\n", variable, a.n, a.rmse, a.mbe, a.r2,
               a.d);
  const auto tmrt = std::find_if(result.variables.begin(), result.variables.end(),
                                 [](const auto& x) { return x.first == "Tmrt"; });
  ASSERT_NE(tmrt, result.variables.end());
  EXPECT_GE(tmrt->second.n, 10);
  EXPECT_LE(tmrt->second.rmse, 4.1);
  EXPECT_TRUE(fs::exists(result.plot));
}

}  // namespace
}  // namespace lockstep::urban
