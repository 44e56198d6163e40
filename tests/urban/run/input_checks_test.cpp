// Doubts about the inputs of a run: what warns, what is refused, and what leaves, calms and labels of time do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "core/files/atomic_file.hpp"
#include "core/temporary_folder.hpp"
#include "io/arrays/npy.hpp"
#include "io/arrays/zip.hpp"
#include "io/rasters/raster_labels.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/exchange.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/series/arrays.hpp"
#include "urban/series/outputs/summary.hpp"

namespace lockstep::urban {
namespace {

constexpr int64_t kGrid = 12;

/// A block of 9 m on flat ground at 20 m above the sea, and a tree; weather of three hours around noon in June.
struct Inputs {
  SeriesOptions options;
  SeriesArrays arrays;

  Inputs() {
    arrays.city.dsm = Raster(kGrid, kGrid, 20);
    arrays.city.dem = Raster(kGrid, kGrid, 20);
    arrays.city.cdsm = Raster(kGrid, kGrid);
    for (int64_t r = 4; r < 7; ++r)
      for (int64_t c = 4; c < 7; ++c) arrays.city.dsm.at(r, c) = 29;
    arrays.city.cdsm.at(9, 9) = 8;
    options.latitude_deg = 50;
    options.longitude_deg = 15;
    options.utc_offset_h = 1;
    options.patches = SkyPatches::p145;
    hours("", {"22,50,2,700", "23,50,2,720", "24,50,2,700"});
  }
  /// Rows from 11:00 on, of columns Ta,RH,wind,Kglobal and further ones.
  void hours(const std::string& columns, const std::vector<std::string>& rows,
             const std::string& date = "2015-06-21") {
    arrays.weather = "time,Ta,RH,wind,Kglobal" + columns + "\n";
    for (size_t k = 0; k < rows.size(); ++k)
      arrays.weather += fmt::format("{}T{}:00,{}\n", date, 11 + k, rows[k]);
  }
  SeriesInputs read() const { return read_series_inputs(options, arrays); }
  std::string refusal() const {
    try {
      read();
    } catch (const InputError& error) { return std::string(error.what()) + "; " + error.hint(); }
    return "nothing was thrown";
  }
  /// The text of a check's warning; "" without one.
  std::string warning(const std::string& check) const {
    const SeriesInputs inputs = read();
    for (const InputCheck& row : inputs.findings.rows())
      if (row.check == check && row.verdict == Verdict::warning) return row.text;
    return "";
  }
  double leaves() const { return read().steps[0].forcing.canopy_transmissivity; }
};

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(InputChecks, NothingIsDoubtedWhereNothingIsWrong) {
  const SeriesInputs inputs = Inputs().read();
  for (const InputCheck& row : inputs.findings.rows()) EXPECT_EQ(row.verdict, Verdict::ok) << row.text;
}

TEST(InputChecks, LeavesAreThoseOfTheHemisphere) {
  constexpr double kOn = 0.03, kOff = 0.5;
  const auto at = [](double latitude, const std::string& date) {
    Inputs in;
    in.options.latitude_deg = latitude;
    in.hours("", {"22,50,2,300"}, date);
    return in;
  };
  EXPECT_EQ(at(50, "2015-06-21").leaves(), kOn);
  EXPECT_EQ(at(50, "2015-01-15").leaves(), kOff);
  EXPECT_EQ(at(-37.8, "2015-01-15").leaves(), kOn);
  EXPECT_EQ(at(-37.8, "2015-06-21").leaves(), kOff);
  EXPECT_EQ(at(1.3, "2015-01-15").leaves(), kOn);
  EXPECT_EQ(at(-1.3, "2015-06-21").leaves(), kOn);
  Inputs south = at(-37.8, "2015-01-15");
  EXPECT_EQ(south.warning("leaves"), "");
  south.options.preset = Preset::umep;  // reproduces the published days
  EXPECT_EQ(south.leaves(), kOff);
  expect_has(south.warning("leaves"), "none at midsummer");
  south.options.leaf_days = LeafDays{280, 15};
  EXPECT_EQ(south.leaves(), kOn);
  south.options.leaf_days = LeafDays{280, 14};
  EXPECT_EQ(south.leaves(), kOff) << "15 January is day 15";
  south.options.leaf_days.reset();
  south.options.evergreen = true;
  EXPECT_EQ(south.leaves(), kOn);
  EXPECT_EQ(south.warning("leaves"), "");
  south.options.leaf_days = LeafDays{1, 2};
  expect_has(south.refusal(), "[urban::SeriesOptions::leaf_days]");
}

TEST(InputChecks, ACalmHourHasAUtci) {
  Inputs in;
  in.hours("", {"22,50,0,700", "23,50,2,720", "24,50,0.3,700"});
  in.options.outputs = {SeriesOutput::tmrt, SeriesOutput::utci};
  expect_has(in.warning("calm hours"), "in 2 of 3 steps");
  Context context(ContextOptions{.device = "cpu,interp"});
  const SeriesGrids grids = compute(context, in.options, in.arrays);
  const size_t pixels = kGrid * kGrid;
  for (size_t p = 0; p < pixels; ++p)
    ASSERT_NEAR(grids.values[pixels + p], utci(22, 50, 0.5, double(grids.values[p])), 1e-3) << p;
}

TEST(InputChecks, HoursOutsideOfTheFitOfUtci) {
  Inputs in;
  in.hours("", {"0,50,25,300"}, "2015-01-15");
  in.options.outputs = {SeriesOutput::utci};
  expect_has(in.warning("UTCI's fit"), "1 of 1 steps");
  // Two pixels: the Tmrt of the second is 80 K above the air in the second step; nothing fits in the third.
  SeriesSummary summary({SeriesOutput::tmrt, SeriesOutput::utci}, 2, 0.5);
  summary.add({{30, 30}, {25, 25}}, {true, -10, 90});
  summary.add({{30, 95}, {25, 40}}, {true, -15, 85});
  summary.add({{30, 30}, {25, 25}}, {true, 90, -10});
  const std::vector<SummaryGrid> grids = summary.grids();
  EXPECT_EQ(grids.back().name, "utci_hours_outside_fit");
  EXPECT_EQ(grids.back().values, (std::vector<float>{0.5f, 1.0f}));
}

TEST(InputChecks, SunHoursCountSunshine) {
  SeriesSummary summary({SeriesOutput::shadow}, 2, 1);
  summary.add({{1, 0}}, {true, 0, 0});
  summary.add({{1, 1}}, {false, 0, 0});
  EXPECT_EQ(summary.grids().at(0).values, (std::vector<float>{1, 0}));
  Inputs in;
  in.hours("", {"22,50,2,700", "23,50,2,60"});  // the second is overcast
  const auto steps = summary_steps(in.read());
  EXPECT_TRUE(steps[0].sunshine);
  EXPECT_FALSE(steps[1].sunshine);
}

TEST(InputChecks, BeamAndDiffuseCloseWithGlobal) {
  Inputs in;
  // The sun is 60° high: 700 W/m² of beam are about 600 on the horizontal.
  in.hours(",Kdirect,Kdiffuse", {"22,50,2,700,700,100", "23,50,2,720,700,110", "24,50,2,700,700,100"});
  EXPECT_EQ(in.warning("closure"), "");
  in.hours(",Kdirect,Kdiffuse", {"22,50,2,700,0,0", "23,50,2,720,0,0", "24,50,2,700,0,0"});
  expect_has(in.refusal(), "Kdirect and Kdiffuse are 0 in 3 of 3 steps");
  in.hours(",Kdirect,Kdiffuse", {"22,50,2,700,900,500", "23,50,2,720,900,500", "24,50,2,700,900,500"});
  expect_has(in.warning("closure"), "in 3 of 3 steps");
  in.hours(",Kdirect,Kdiffuse", {"22,50,2,500,200,300", "23,50,2,500,200,300", "24,50,2,500,200,300"},
           "2015-01-15");
  expect_has(in.warning("closure"), "urban::SeriesOptions::horizontal_direct horizontal");
  in.options.horizontal_direct = true;
  EXPECT_EQ(in.warning("closure"), "");
  const StepForcing step = in.read().steps[1].forcing;
  EXPECT_NEAR(step.beam_w_m2 * std::sin(step.sun_altitude_deg * 3.14159265358979 / 180), 200, 1e-9);
}

TEST(InputChecks, GlobalRadiationHasItsLimits) {
  Inputs in;
  in.hours("", {"2,50,2,1200"}, "2015-12-21");  // a sun of 16°
  expect_has(in.refusal(), "reach the top of the atmosphere");
  in.hours("", {"2,50,2,520"}, "2015-12-21");
  expect_has(in.warning("global radiation"), "exceeds");
  in.hours("", {"22,50,2,0", "23,50,2,0"});
  expect_has(in.warning("global radiation"), "is 0 in all 2 steps");
  in.hours("", {"22,0.5,2,700", "23,0.6,2,700"});
  expect_has(in.refusal(), "RH is at most 0.6 in all rows");
}

TEST(InputChecks, OneBadRowOutsideOfTheRunIsNoMatter) {
  Inputs in;
  in.hours("", {"22,104,2,700", "23,50,2,720", "24,50,2,700"});
  expect_has(in.refusal(), "RH is 104 [argument weather:2]");
  in.options.from = "2015-06-21T12:00";
  EXPECT_EQ(in.read().steps.size(), 2u);
}

TEST(InputChecks, ClockAndPlace) {
  Inputs in;
  in.options.longitude_deg = 11.6;
  in.options.utc_offset_h = -7;
  in.hours("", {"22,50,2,0"});
  expect_has(in.warning("clock"), "UTC-7 at longitude 11.60");
  in.options.utc_offset_h = 0;  // universal time is fine anywhere
  in.options.longitude_deg = 140;
  EXPECT_EQ(in.warning("clock"), "");
}

TEST(InputChecks, LabelsOfIntervals) {
  Inputs in;
  const auto first = [&](IntervalLabel label) {
    in.options.interval = label;
    return in.read().steps[0];
  };
  const WeatherStep end = first(IntervalLabel::end), start = first(IntervalLabel::start),
                    middle = first(IntervalLabel::middle);
  EXPECT_EQ(io::civil_text(end.time), "2015-06-21T11:00");
  EXPECT_EQ(io::civil_text(start.time), "2015-06-21T12:00");
  EXPECT_EQ(io::civil_text(middle.time), "2015-06-21T11:30");
  // Near noon in June an hour is 15° of hour angle and more of azimuth.
  EXPECT_GT(start.forcing.sun_azimuth_deg, end.forcing.sun_azimuth_deg + 15);
}

TEST(InputChecks, HeightOfTheWindSensor) {
  Inputs in;
  in.options.wind_height_m = 2;
  EXPECT_NEAR(comfort_wind(in.read()).utci[0], 2 * std::pow(5, 0.2), 1e-12);
  in.options.wind_height_m = 0;
  expect_has(in.refusal(), "[urban::SeriesOptions::wind_height_m]");
}

TEST(InputChecks, HeightsThatDoNotGoTogether) {
  const auto with = [](const std::function<void(CityInput&)>& change) {
    Inputs in;
    change(in.arrays.city);
    return in;
  };
  const auto add = [](Raster& raster, float by, float factor = 1) {
    for (float& v : raster.pixels()) v = v * factor + by;
  };
  expect_has(with([&](CityInput& c) { add(c.dem, 40); }).refusal(), "the DSM is below the DEM");
  expect_has(with([&](CityInput& c) { add(c.dem, -50); }).refusal(), "nothing is ground");
  expect_has(with([&](CityInput& c) { add(c.dsm, 0, 10); }).refusal(), "in decimetres");
  expect_has(with([&](CityInput& c) { add(c.dsm, 0, 1 / 0.3048f); }).refusal(), "in feet");
  expect_has(with([&](CityInput& c) {
               for (int64_t p = 0; p < kGrid * kGrid; ++p)
                 c.cdsm.pixels()[size_t(p)] += c.dsm.pixels()[size_t(p)];
             }).refusal(),
             "urban::CityFiles::canopy_heights absolute");
  expect_has(with([&](CityInput& c) {
               add(c.cdsm, 8);
               c.canopy_heights = CanopyHeights::absolute;
             }).refusal(),
             "urban::CityFiles::canopy_heights above-ground");
  expect_has(with([&](CityInput& c) { add(c.cdsm, 0, 5.5f); }).warning("tallest tree"), "are they feet");
  expect_has(with([&](CityInput& c) {
               c.dem = {};
               for (int64_t p = 0; p < kGrid * kGrid; ++p) c.dsm.pixels()[size_t(p)] = float(p);
             }).warning("ground"),
             "taken as flat");
  const auto with_ground = [](int pixels) {
    Inputs in;
    CityInput& c = in.arrays.city;
    c.dsm = Raster(10, 10, 29), c.dem = Raster(10, 10, 20), c.cdsm = Raster(10, 10);
    for (int p = 0; p < pixels; ++p) c.dsm.pixels()[size_t(p)] = 20;
    return in.warning("DEM");
  };
  expect_has(with_ground(4), "only 4.0 % of the pixels are ground");
  EXPECT_EQ(with_ground(5), "");
}

TEST(InputChecks, TextsAreInTheCallersWords) {
  const OptionList& all = schema_of<SeriesOptions>();
  Inputs in;
  in.hours(",Kdirect,Kdiffuse", {"22,50,2,500,200,300", "23,50,2,500,200,300", "24,50,2,500,200,300"},
           "2015-01-15");
  const OptionError error =
      all.error({OptionError::Kind::invalid, "dem", "all ground", "other than {dsm}", "see {canopy}"});
  for (const auto& [words, direct, row] :
       {std::tuple{all.in_shell("lockstep urban check"), ": --direct horizontal",
                   "all ground [--dem]: expected other than --dsm; see --canopy"},
        {all.in_python("urban.check"), ": direct horizontal",
         "all ground [urban.check, argument dem=]: expected other than dsm; see canopy"}}) {
    in.options.words = words;
    expect_has(in.warning("closure"), direct);
    Findings kept(Findings::Errors::kept, words);
    kept.refuse("DEM", error);
    EXPECT_EQ(kept.rows().at(0).text, row);
  }
  EXPECT_THROW(Findings().refuse("DEM", error), OptionError) << "a caller spells it anew";
}

TEST(InputChecks, ClassesThatMarkMissingPixels) {
  Inputs in;
  in.arrays.land_cover = Raster(kGrid, kGrid, 5);
  in.read();
  in.arrays.land_cover.at(2, 3) = 255;
  const std::string message = in.refusal();
  expect_has(message, "land cover 255 at row 2, column 3");
  expect_has(message, "-a_nodata 255");
}

TEST(InputChecks, PointsOnRoofsAndHoles) {
  const test::TemporaryFolder folder;
  Inputs in;
  in.options.points = folder / "poi.csv";
  in.arrays.city.dsm.at(0, 0) = std::numeric_limits<float>::quiet_NaN();
  write_file(in.options.points, "id,x,y\nstreet,2.5,2.5\nroof,5.5,6.5\nhole,0.5,11.5\n");
  const std::vector<std::string> warnings = in.read().findings.warnings();
  ASSERT_EQ(warnings.size(), 2u);
  expect_has(warnings[0], "point roof is on a roof, 9.0 m");
  expect_has(warnings[1], "point hole is on a missing pixel");
}

TEST(InputChecks, FeetBecomeMetres) {
  if (!io::gdal_unavailable_reason().empty()) GTEST_SKIP() << io::gdal_unavailable_reason();
  const test::TemporaryFolder folder;
  io::RasterGrid grid;
  grid.rows = grid.cols = 4;
  grid.place(1);
  const std::vector<float> values(16, 100);
  const auto read = [&](const std::string& unit, const std::string& wkt) {
    io::RasterGrid own = grid;
    own.crs_wkt = wkt;
    const auto writer = io::create_labelled_raster(folder / "dsm.tif", own, {"", unit, {}});
    writer->write(0, 0, 4, 4, values.data());
    writer->commit();
    return read_city({.dsm = folder / "dsm.tif"});
  };
  const LoadedCity feet = read("ft", ""), survey = read("US survey foot", ""), metres = read("m", ""),
                   odd = read("furlong", "");
  EXPECT_NEAR(feet.input.dsm.at(1, 1), 30.48, 1e-4);
  EXPECT_NEAR(survey.input.dsm.at(1, 1), 30.4800610, 1e-4);
  EXPECT_EQ(metres.input.dsm.at(1, 1), 100);
  EXPECT_TRUE(metres.doubts.empty());
  expect_has(feet.doubts.at(0), "converted to metres");
  expect_has(odd.doubts.at(0), "'furlong', which is not a unit of length");
  const LoadedCity compound = read("", io::crs_from_epsg(3006));
  EXPECT_EQ(compound.input.dsm.at(1, 1), 100);
  const LoadedCity navd = read("", "EPSG:3006+6360");
  EXPECT_NEAR(navd.input.dsm.at(1, 1), 30.4800610, 1e-4) << "NAVD88 in US survey feet";
  // Metres that are written on its grid are read as metres, and lie on a map that names no heights.
  const io::RasterLabels in_metres{"", "m", {}};
  for (const io::RasterLabels& labels : {io::RasterLabels{}, in_metres}) {
    const auto writer = io::create_labelled_raster(folder / "cdsm.tif", navd.grid, labels);
    writer->write(0, 0, 4, 4, std::vector<float>(16, 7).data());
    writer->commit();
    EXPECT_EQ(read_city({.dsm = folder / "dsm.tif", .cdsm = folder / "cdsm.tif"}).input.cdsm.at(1, 1), 7);
  }
}

TEST(InputChecks, ViewFactorsOfAnotherCity) {
  const test::TemporaryFolder folder;
  Inputs in;
  Context context(ContextOptions{.device = "cpu,interp"});
  const auto write = [&](const char* name, const Raster& raster) {
    io::write_npy(folder / name, raster.values);
    return folder / name;
  };
  SkyRunOptions sky;
  sky.city.dsm = write("dsm.npy", in.arrays.city.dsm);
  sky.city.cdsm = write("cdsm.npy", in.arrays.city.cdsm);
  sky.city.pixel_size_m = 1;
  sky.output = {folder / "svf", GridFormat::npy, false};
  sky.sky.patches = SkyPatches::p145;
  sky.sky.keep_states = true;
  run(context, sky);
  in.options.svf_folder = folder / "svf";
  in.options.city = sky.city;
  in.options.city.dem = write("dem.npy", in.arrays.city.dem);
  in.options.weather = folder / "w.csv";
  write_file(in.options.weather, in.arrays.weather);
  const auto refusal = [&] {
    try {
      read_series_inputs(in.options);
    } catch (const InputError& error) { return std::string(error.what()); }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(refusal(), "nothing was thrown");
  in.arrays.city.dsm.at(5, 5) = 31;
  write("dsm.npy", in.arrays.city.dsm);
  expect_has(refusal(), "view factors of another city: ground and buildings");
  // Without a record plants still tell.
  std::filesystem::remove(folder / "svf/sky_inputs.json");
  EXPECT_EQ(refusal(), "nothing was thrown");
  in.options.city.cdsm.clear();
  expect_has(refusal(), "view factors with plants, and no canopy");
  sky.city.cdsm.clear();
  run(context, sky);
  std::filesystem::remove(folder / "svf/sky_inputs.json");
  in.options.city.cdsm = folder / "cdsm.npy";
  expect_has(refusal(), "view factors without plants next to a canopy");
}

/// UMEP fills the arrays of plants with 0 where a city has none.
TEST(InputChecks, AnArchiveWithoutPlantsIsNoForest) {
  if (!io::gdal_unavailable_reason().empty()) GTEST_SKIP() << io::gdal_unavailable_reason();
  const test::TemporaryFolder folder;
  Inputs in;
  Context context(ContextOptions{.device = "cpu,interp"});
  io::write_npy(folder / "dsm.npy", in.arrays.city.dsm.values);
  SkyRunOptions sky;
  sky.city.dsm = folder / "dsm.npy";
  sky.city.pixel_size_m = 1;
  sky.output = {folder / "svf", GridFormat::npy, false};
  sky.sky.patches = SkyPatches::p145;
  sky.sky.keep_states = true;
  run(context, sky);
  to_umep(folder / "svf", folder / "umep", 0.03);
  io::NpzArrays arrays = io::read_npz(folder / "umep/shadowmats.npz");
  for (auto& [name, array] : arrays)
    if (name != "shadowmat") array = Array(Storage::u8, array.shape());
  io::write_npz(folder / "umep/shadowmats.npz", arrays);
  from_umep(folder / "umep/svfs.zip", folder / "back", GridFormat::npy);
  const auto states = [&](const char* name) {
    return io::find_array(io::read_npz(folder / name / "sky_states.npz"), "states", name).packed();
  };
  const Array there = states("svf"), back = states("back");
  EXPECT_TRUE(std::equal(there.raw().begin(), there.raw().end(), back.raw().begin(), back.raw().end()));
}

TEST(InputChecks, CheckListsErrorsAsRows) {
  Inputs in;
  in.options.weather = "/nowhere/weather.csv";
  in.options.city.dsm = "/nowhere/dsm.tif";
  Context context(ContextOptions{.device = "cpu,interp"});
  const auto rows = check(context, in.options);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].check, "city");
  EXPECT_EQ(rows[0].verdict, Verdict::error);
  EXPECT_EQ(rows[1].check, "weather");
  expect_has(rows[1].text, "/nowhere/weather.csv");
}

}  // namespace
}  // namespace lockstep::urban
