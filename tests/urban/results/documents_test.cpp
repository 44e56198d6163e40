// Documents of results whose numbers all differ: each has its own name.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "lockstep/urban/comfort.hpp"
#include "lockstep/urban/plant.hpp"
#include "lockstep/urban/report.hpp"
#include "lockstep/urban/series.hpp"
#include "lockstep/urban/sunlight.hpp"

namespace lockstep::urban {
namespace {

using nlohmann::json;

void fill(RunResult& r) {
  r.rows = 3, r.cols = 4, r.pixel_size_m = 2.5, r.projection_scale = 1.25;
  r.outputs = {{"tmrt", "tmrt.tif", "tmrt.png", 5, 6, 7, 8}};
  r.outputs.push_back({"pet", "pet.tif", "", std::numeric_limits<double>::quiet_NaN(), 1, 2, 12});
  r.warnings = {"hot"}, r.left_over = {"old.tif"};
  TileReport& t = r.tiles;
  t.side = 9, t.tiles = 10, t.resumed = 11, t.workers = 12, t.queue_depth_peak = 13, t.predicted_bytes = 14;
  t.predicted_host_bytes = 15, t.peak_host_bytes = 16, t.stitch_seconds = 17, t.seconds = 18;
  t.tile_seconds = {4, 1, 2, 3, 5};
}

void expect_numbers(const json& document, const std::vector<std::pair<const char*, double>>& numbers) {
  for (const auto& [name, value] : numbers) EXPECT_EQ(document.at(name), value) << name;
}

void expect_run(const json& document) {
  expect_numbers(document, {{"rows", 3}, {"cols", 4}, {"pixel_size", 2.5}, {"projection_scale", 1.25}});
  expect_numbers(document["tiles"], {{"side", 9},
                                     {"tiles", 10},
                                     {"resumed", 11},
                                     {"workers", 12},
                                     {"queue_depth_peak", 13},
                                     {"predicted_bytes", 14},
                                     {"predicted_host_bytes", 15},
                                     {"peak_host_bytes", 16},
                                     {"tile_seconds_median", 3},
                                     {"tile_seconds_p95", 4.8},
                                     {"stitch_seconds", 17},
                                     {"seconds", 18}});
  const json& tmrt = document["outputs"][0];
  expect_numbers(tmrt, {{"min", 5}, {"max", 6}, {"mean", 7}, {"missing", 8}});
  EXPECT_EQ(tmrt["name"], "tmrt");
  EXPECT_EQ(tmrt["file"], "tmrt.tif");
  EXPECT_EQ(tmrt["picture"], "tmrt.png");
  EXPECT_TRUE(document["outputs"][1]["min"].is_null());
  EXPECT_EQ(document["warnings"], json{"hot"});
  EXPECT_EQ(document["left_over"], json{"old.tif"});
}

TEST(UrbanDocuments, GridsAndTheirSun) {
  ShadowRunResult shadow;
  fill(shadow);
  shadow.sun = {200, 30};
  json document = json::parse(to_json(shadow));
  expect_run(document);
  expect_numbers(document["sun"], {{"azimuth", 200}, {"grid_azimuth", 200}, {"altitude", 30}});
  EXPECT_FALSE(document["sun"]["night"]);
  SunAtTime place;
  place.latitude_deg = 57, place.longitude_deg = 12, place.azimuth_deg = 203, place.convergence_deg = 3;
  shadow.place = place;
  shadow.sun.altitude_deg = 0;
  document = json::parse(to_json(shadow));
  expect_numbers(document["sun"], {{"azimuth", 203}, {"grid_azimuth", 200}});
  expect_numbers(document["place"], {{"latitude", 57}, {"longitude", 12}, {"convergence", 3}});
  EXPECT_TRUE(document["sun"]["night"]) << "on the horizon";
  RunResult plain;
  plain.rows = 1, plain.projection_scale = 1;
  document = json::parse(to_json(plain));
  for (const char* absent : {"projection_scale", "tiles", "warnings", "left_over"})
    EXPECT_FALSE(document.contains(absent)) << absent;
}

TEST(UrbanDocuments, Sunlight) {
  SunlightResult r;
  fill(r);
  r.from = "a", r.to = "b", r.days = 20, r.positions = 21, r.possible_h = 22;
  r.latitude_deg = 23, r.longitude_deg = 24, r.utc_offset_h = 25;
  r.facades = FacadeResult{"f.gpkg", 26, 27, 28, 29, 30};
  r.rule = RuleResult{"rule", "source", {"03-21"}, 31, {{"grade", 32, 33, 34, 35, 36}}};
  json document = json::parse(to_json(r));
  expect_run(document);
  expect_numbers(document, {{"days", 20}, {"positions", 21}, {"possible_hours", 22}});
  expect_numbers(document["place"], {{"latitude", 23}, {"longitude", 24}, {"utc_offset", 25}});
  expect_numbers(document["facades"],
                 {{"walls", 26}, {"bands", 27}, {"area_m2", 28}, {"hours", 29}, {"hours_buildings", 30}});
  EXPECT_EQ(document["rule"]["least_altitude"], 31);
  expect_numbers(document["rule"]["grades"][0], {{"hours", 32},
                                                 {"ground_percent", 33},
                                                 {"ground_percent_buildings", 34},
                                                 {"facade_percent", 35},
                                                 {"facade_percent_buildings", 36}});
  r.facades.reset();
  document = json::parse(to_json(r));
  EXPECT_FALSE(document.contains("facades") || document["rule"]["grades"][0].contains("facade_percent"));
}

TEST(UrbanDocuments, Trees) {
  PlantResult r;
  fill(r);
  r.objective = "hours>38", r.unit = "h", r.before = 40, r.after = 41;
  r.trees = {{42, 43, 44, 45, 46, 47}};
  r.candidates = {{48, 49, 50, 51, 52, 53, 54}};
  r.refusals = {55, 56, 57, 58, 59};
  r.reach_m = 60, r.evaluations = 61, r.evaluated_share = 0.5, r.raised = 62;
  r.cdsm = "c", r.tdsm = "t", r.places = "p", r.curve = "v", r.curve_picture = "w", r.before_run = "x";
  r.after_run = "y", r.comparison = "z";
  json document = json::parse(to_json(r));
  expect_run(document);
  expect_numbers(document, {{"before", 40},
                            {"after", 41},
                            {"reach", 60},
                            {"evaluations", 61},
                            {"evaluated_share", 0.5},
                            {"raised", 62}});
  expect_numbers(document["trees"][0],
                 {{"row", 42}, {"col", 43}, {"x", 44}, {"y", 45}, {"gain", 46}, {"total", 47}});
  expect_numbers(
      document["candidates"][0],
      {{"row", 48}, {"col", 49}, {"x", 50}, {"y", 51}, {"first_gain", 52}, {"last_gain", 53}, {"tree", 54}});
  expect_numbers(document["positions"],
                 {{"all", 55}, {"not_allowed", 56}, {"no_ground", 57}, {"no_room", 58}, {"edge", 59}});
  const std::pair<const char*, const char*> files[] = {
      {"cdsm", "c"},          {"tdsm", "t"},       {"places", "p"},    {"curve", "v"},
      {"curve_picture", "w"}, {"before_run", "x"}, {"after_run", "y"}, {"comparison", "z"}};
  for (const auto& [key, file] : files) EXPECT_EQ(document[key], file);
}

TEST(UrbanDocuments, SeriesAndTheirAgreement) {
  ValidationResult v;
  SeriesResult& r = v.series;
  fill(r);
  r.times = {"first", "middle", "last"};
  r.steps = 70, r.day_steps = 71, r.step_min = 72, r.substeps = 73;
  r.latitude_deg = 74, r.longitude_deg = 75, r.utc_offset_h = 76;
  r.points = {{"id", 77, 78, 79, 80}};
  r.stress = {{"utci_mean", "strong", 81, 82}};
  SeriesTimes& m = r.metrics;
  m.timestep_wall_time_s = 83, m.timestep_wall_time_p95_s = 84, m.tile_turnaround_ms = 85;
  m.tile_turnaround_p95_ms = 86, m.stitch_ms = 87, m.copy_ms = 88, m.write_ms = 89, m.wait_ms = 90;
  m.stage_time_ms["sky"] = 91, m.gpu_stage_time_ms["sky"] = 92;
  v.variables = {{"Tmrt", {93, 94, 95, 0.5, 0.25}}};
  v.variables.emplace_back("Lup", Agreement{1, 0, 0, std::numeric_limits<double>::quiet_NaN(), 1});
  const json whole = json::parse(to_json(v)), document = whole["run"];
  expect_run(document);
  expect_numbers(document, {{"steps", 70}, {"day_steps", 71}, {"step_minutes", 72}, {"substeps", 73}});
  EXPECT_EQ(document["from"], "first");
  EXPECT_EQ(document["to"], "last");
  expect_numbers(document["place"], {{"latitude", 74}, {"longitude", 75}, {"utc_offset", 76}});
  expect_numbers(document["points"][0], {{"x", 77}, {"y", 78}, {"row", 79}, {"col", 80}});
  expect_numbers(document["stress"][0], {{"m2", 81}, {"percent", 82}});
  expect_numbers(document["metrics"], {{"timestep_wall_time_s", 83},
                                       {"timestep_wall_time_p95_s", 84},
                                       {"tile_turnaround_ms", 85},
                                       {"tile_turnaround_p95_ms", 86},
                                       {"stitch_ms", 87},
                                       {"copy_ms", 88},
                                       {"write_ms", 89},
                                       {"wait_ms", 90},
                                       {"queue_depth_peak", 13},
                                       {"in_flight_limit", 12}});
  EXPECT_EQ(document["metrics"]["stage_time_ms"]["sky"], 91);
  EXPECT_EQ(document["metrics"]["gpu_stage_time_ms"]["sky"], 92);
  expect_numbers(whole["variables"]["Tmrt"],
                 {{"n", 93}, {"rmse", 94}, {"mbe", 95}, {"r2", 0.5}, {"d", 0.25}});
  EXPECT_TRUE(whole["variables"]["Lup"]["r2"].is_null());
}

TEST(UrbanDocuments, GatesQuirksAndIndices) {
  const json gates = json::parse(
      to_json(std::vector<Gate>{{"a", 1, 2, true, "K", "why", GridDifference{3, 4, 5}}, {"b", 6, 7, false}}));
  expect_numbers(
      gates["gates"][0],
      {{"value", 1}, {"limit", 2}, {"mean_abs_diff", 3}, {"max_abs_diff", 4}, {"finite_equal_percent", 5}});
  EXPECT_TRUE(gates["gates"][0]["pass"]);
  EXPECT_FALSE(gates["gates"][1]["pass"] || gates["gates"][1].contains("max_abs_diff"));
  const json quirks = json::parse(to_json(std::vector<QuirkEffect>{{"q", "v", 1, 2, 3, 4}}));
  expect_numbers(quirks["quirks"][0], {{"mean_day", 1}, {"mean_night", 2}, {"mean_abs", 3}, {"max_abs", 4}});
  UtciResult utci;
  utci.value = 1, utci.wind = 2, utci.stress = "none", utci.fitted = false;
  const json index = json::parse(to_json(utci));
  expect_numbers(index, {{"utci", 1}, {"wind_10m", 2}});
  EXPECT_FALSE(index["fitted"]);
  PetResult pet;
  pet.value = 3, pet.wind = 4;
  expect_numbers(json::parse(to_json(pet)), {{"pet", 3}, {"wind_1m1", 4}});
}

}  // namespace
}  // namespace lockstep::urban
