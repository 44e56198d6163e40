// Sun on facades and rules for daylight by closed forms: a lone box, a canyon, a row of trees before a wall.
#include "urban/sunlight/facades.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numbers>
#include <set>

#include "core/temporary_folder.hpp"
#include "io/rasters/raster.hpp"
#include "io/text/file.hpp"
#include "io/vectors/features.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/sunlight.hpp"
#include "urban/sunlight/sun_tiles.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
using lockstep::test::TemporaryFolder;

constexpr double kDegree = std::numbers::pi / 180;

/// Hours between the rising and the setting of a point at `altitude`, by the declination of the day.
double hours_above(double latitude, double declination, double altitude) {
  const double c =
      (std::sin(altitude * kDegree) - std::sin(latitude * kDegree) * std::sin(declination * kDegree)) /
      (std::cos(latitude * kDegree) * std::cos(declination * kDegree));
  return c >= 1 ? 0 : c <= -1 ? 24 : 2 * std::acos(c) / kDegree / 15;
}
/// Hours in which the sun is on the equator's side of east and west: it crosses the prime vertical where cos H = tan δ / tan φ.
double hours_on_equator_side(double latitude, double declination) {
  const double c = std::tan(declination * kDegree) / std::tan(latitude * kDegree);
  return c < 0 ? hours_above(latitude, declination, -0.57) : 2 * std::acos(c) / kDegree / 15;
}

using WallFields = std::map<std::string, double>;

/// Flat ground of 1 m with what a test puts on it.
struct District {
  static constexpr int64_t kSide = 121;
  TemporaryFolder folder;
  SunlightOptions options;
  std::vector<float> dsm = std::vector<float>(kSide * kSide, 0.0f), cdsm = dsm;

  District() {
    options.date = "2026-03-21";
    options.latitude_deg = 57.7;
    options.longitude_deg = 0;
    options.facades = true;
    options.output = {folder / "out", GridFormat::npy, false};
    options.city.dsm = folder / "dsm.npy";
    options.city.pixel_size_m = 1;
  }
  static void put(std::vector<float>& grid, int64_t row, int64_t col, int64_t rows, int64_t cols,
                  float height) {
    for (int64_t r = row; r < row + rows; ++r)
      for (int64_t c = col; c < col + cols; ++c) grid[size_t(r * kSide + c)] = height;
  }
  SunlightResult compute(const char* devices = "cpu,interp") {
    const auto write = [&](const fs::path& file, const std::vector<float>& values) {
      io::RasterGrid grid;
      grid.rows = grid.cols = kSide;
      io::write_raster(file, grid, Array::of(values, {kSide, kSide}));
    };
    write(options.city.dsm, dsm);
    if (!options.city.cdsm.empty()) write(options.city.cdsm, cdsm);
    Context context(ContextOptions{.device = devices});
    return run(context, options);
  }
  std::vector<WallFields> read(const char* layer) const {
    std::vector<WallFields> all;
    for (const io::Feature& feature :
         io::read_feature_file(options.output.folder / "facades.gpkg", {.layer = layer}).features) {
      EXPECT_EQ(feature.type, "LINESTRING");
      all.emplace_back();
      for (const auto& [name, text] : feature.fields) all.back()[name] = std::stod(text);
    }
    return all;
  }
  /// Means of a column by the nearest of the four directions: north, east, south, west.
  std::vector<double> by_direction(const char* column, const char* layer = "facades") const {
    std::vector<double> sums(4), counts(4);
    for (const WallFields& wall : read(layer)) {
      const auto side = size_t(std::lround(wall.at("azimuth") / 90)) % 4;
      if (std::abs(std::remainder(wall.at("azimuth"), 90)) > 1) continue;
      sums[side] += wall.at(column);
      counts[side] += 1;
    }
    for (size_t k = 0; k < 4; ++k) sums[k] /= counts[k];
    return sums;
  }
};

class FacadesOfDistrict : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!io::gdal_unavailable_reason().empty()) GTEST_SKIP() << io::gdal_unavailable_reason();
  }
};

struct SolarDay {
  double latitude, declination;
  const char* date;
};

// Declinations of the almanac for 2026 at noon.
TEST_F(FacadesOfDistrict, ALoneBoxSeesTheSunByItsSides) {
  for (const SolarDay& day : {SolarDay{57.7, 0.35, "2026-03-21"}, SolarDay{57.7, 23.44, "2026-06-21"},
                              SolarDay{40.0, 23.44, "2026-06-21"}, SolarDay{-33.9, -23.44, "2026-12-21"}}) {
    SCOPED_TRACE(day.date);
    District d;
    District::put(d.dsm, 45, 45, 30, 30, 12);
    d.options.latitude_deg = day.latitude;
    d.options.date = day.date;
    const SunlightResult result = d.compute();
    const double all = hours_above(day.latitude, day.declination, -0.57),
                 sunny = hours_on_equator_side(day.latitude, day.declination);
    const std::vector<double> hours = d.by_direction("hours");
    const bool south = day.latitude < 0;
    EXPECT_NEAR(hours[south ? 0 : 2], sunny, 0.2);
    EXPECT_NEAR(hours[south ? 2 : 0], all - sunny, 0.2);
    EXPECT_NEAR(hours[1], all / 2, 0.2) << "until noon";
    EXPECT_NEAR(hours[3], all / 2, 0.2);
    ASSERT_TRUE(result.facades);
    EXPECT_EQ(result.facades->walls, 120);
    EXPECT_EQ(result.facades->bands, 480) << "of 3 m";
    EXPECT_NEAR(result.facades->area_m2, 4 * 30 * 12, 4 * 30 * 12 * 0.03);
    EXPECT_NEAR(result.facades->hours, all / 2, 0.3) << "each direction and its opposite";
    EXPECT_EQ(result.facades->hours, result.facades->hours_buildings);
  }
}

// At the equinox the sun keeps to a plane through east and west, 90° − φ high above the south: the southern row shades the
// other up to 12 − 10 / tan φ = 5.7 m. Past the ends of the street the low sun is seen for a while.
TEST_F(FacadesOfDistrict, ACanyonShadesTheLowerFloors) {
  District d;
  District::put(d.dsm, 55, 0, 5, District::kSide, 12);
  District::put(d.dsm, 70, 0, 5, District::kSide, 12);
  const SunlightResult result = d.compute();
  constexpr int kWalls = 119;  // of a side, row by row: north and south of the first row, then of the second
  int middle = 0;
  for (const WallFields& band : d.read("bands")) {
    const auto wall = int(band.at("wall"));
    const double height = (band.at("bottom") + band.at("top")) / 2;
    if (wall > 3 * kWalls) {
      EXPECT_EQ(band.at("azimuth"), 180);
      EXPECT_GT(band.at("hours"), result.possible_h - 0.5) << wall;
    }
    if (std::abs(wall - 1.5 * kWalls) > 15) continue;
    EXPECT_EQ(band.at("azimuth"), 180);
    ++middle;
    if (height < 5.7)
      EXPECT_LT(band.at("hours"), 2.5) << height;
    else
      EXPECT_GT(band.at("hours"), result.possible_h - 0.7) << height;
  }
  EXPECT_EQ(middle, 30 * 4);
}

// Crowns from 4 to 10 m up, 5 m before the wall, hide the sun 32.3° high from the heights 0.84 to 7 m: below, it shines through
// under the crowns.
TEST_F(FacadesOfDistrict, TreesShadeABandOfTheWall) {
  District d;
  District::put(d.dsm, 50, 0, 5, District::kSide, 12);
  District::put(d.cdsm, 60, 0, 1, District::kSide, 10);
  d.options.city.cdsm = d.folder / "cdsm.npy";
  d.options.city.trunk_ratio = 0.4;
  d.options.floor_height_m = 0.5;
  const SunlightResult result = d.compute();
  std::map<double, std::pair<double, double>> hours;  // of a wall in the middle, by height
  for (const WallFields& band : d.read("bands"))
    if (band.at("azimuth") == 180 && band.at("wall") == 180) {
      hours[(band.at("bottom") + band.at("top")) / 2] = {band.at("hours"), band.at("hours_buildings")};
    }
  ASSERT_EQ(hours.size(), 24u);
  for (const auto& [height, both] : hours) {
    EXPECT_GT(both.second, result.possible_h - 0.5) << height;
    if (height > 1.4 && height < 6.6) EXPECT_LT(both.first, 2) << height;
    if (height < 0.5 || height > 8) EXPECT_GT(both.first, result.possible_h - 2) << height;
  }
  EXPECT_LT(result.facades->hours, result.facades->hours_buildings);
}

TEST_F(FacadesOfDistrict, DoNotDependOnTiles) {
  const auto bytes = [](int64_t side) {
    District d;
    District::put(d.dsm, 45, 45, 30, 30, 12);
    District::put(d.dsm, 20, 80, 17, 9, 40);
    for (int64_t k = 0; k < 12; ++k) District::put(d.dsm, 85 + k, 20 + k, 9, 9, 15);
    District::put(d.cdsm, 78, 50, 3, 20, 9);
    d.options.city.cdsm = d.folder / "cdsm.npy";
    d.options.minutes = 60;
    d.options.tiles.side = side;
    d.compute();
    return io::read_file(d.options.output.folder / "facades.gpkg");
  };
  EXPECT_EQ(bytes(0), bytes(64));
}

TEST_F(FacadesOfDistrict, ProgressCountsTheSunsAlone) {
  District d;
  District::put(d.dsm, 45, 45, 30, 30, 12);
  d.options.minutes = 60;
  std::set<int64_t> totals;
  int64_t last = 0;
  d.options.tiles.on_progress = [&](int64_t done, int64_t total) {
    EXPECT_GE(done, last);
    last = done;
    totals.insert(total);
  };
  const SunlightResult result = d.compute();
  EXPECT_EQ(totals, std::set<int64_t>{result.positions});
  EXPECT_EQ(last, result.positions);
}

/// A box of 5 m, 12 m high.
City box_city() {
  CityInput input;
  input.dsm = Raster(30, 30, 0.0f);
  for (int64_t row = 12; row < 17; ++row)
    for (int64_t col = 12; col < 17; ++col) input.dsm.at(row, col) = 12;
  return prepare_city(std::move(input));
}

TEST(Facades, AreCountedAgainWhereTilesAreKept) {
  const TemporaryFolder folder;
  Context context(ContextOptions{.device = "cpu,interp"});
  const City city = box_city();
  const Walls walls = collect_walls(context, city, {}, {});
  TileOptions tiles;
  tiles.resume_folder = folder / "tiles";
  std::vector<uint32_t> counts[2];
  for (std::vector<uint32_t>& counted : counts) {
    Facades facades = find_facades(city, walls, 3, 1 << 20);
    SunJob job;
    job.sums = {{{180, 30}, {200, 25}}};
    job.facades = &facades;
    stream_sunlight(context, city, job, tiles, [](const Tile&, const TileResult&) {});
    counted = facades.past_buildings;
  }
  EXPECT_EQ(*std::ranges::max_element(counts[0]), 2u) << "to the south";
  EXPECT_EQ(counts[1], counts[0]);
}

TEST(Facades, PartsCutAWallOfMoreBandsThanOneHolds) {
  using Parts = std::vector<std::vector<int64_t>>;
  const City city = box_city();
  Walls walls{Raster(30, 30), Raster(30, 30)};
  walls.height.at(11, 14) = 9;
  const Facades facades = find_facades(city, walls, 3, 1 << 20);
  Tile tile;
  tile.rows = tile.cols = 20;
  EXPECT_EQ(FacadePoints::parts_of(facades, tile, 2), (Parts{{0, 1}, {2}}));
  EXPECT_EQ(FacadePoints::parts_of(facades, tile, 3), (Parts{{0, 1, 2}}));
  tile.row = 20;
  tile.rows = 10;
  EXPECT_EQ(FacadePoints::parts_of(facades, tile, 2), Parts(1)) << "no wall is in the tile";
}

TEST(Facades, AreRefusedWhereTheyOutgrowTheMemory) {
  CityInput input;
  input.dsm = Raster(9, 9, 0.0f);
  input.dsm.at(4, 4) = 10;
  const City city = prepare_city(std::move(input));
  Walls walls{Raster(9, 9), Raster(9, 9)};
  walls.height.at(5, 4) = 10;
  EXPECT_EQ(find_facades(city, walls, 3, 1 << 20).bands(), 3);
  EXPECT_EQ(find_facades(city, walls, 4, 1 << 20).bands(), 3) << "10 / 4 is 2.5, rounded";
  EXPECT_EQ(find_facades(city, walls, 100, 1 << 20).bands(), 1);
  try {
    find_facades(city, walls, 3, 100);
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("3 bands of facades"), std::string::npos) << error.what();
  }
}

// ---- rules ----

struct RuleCase {
  SunRule rule;
  double latitude, declination, altitude;  ///< apparent altitudes are refraction higher
  int grade;
};

// Day of the fewest hours on an open field: 17 January −20.8°, 19 February −11.2°, 22 November −20.1°, 21 March 0.3°.
TEST(SunRules, AnOpenField) {
  for (const RuleCase& c : {RuleCase{SunRule::din5034_winter, 48.1, -20.8, 5.86, 1},
                            {SunRule::din5034_winter, 65.0, -20.8, 5.86, 0},
                            {SunRule::din5034_winter, 75.0, -20.8, 5.86, 0},  // polar night
                            {SunRule::din5034_equinox, 57.7, 0.3, 5.86, 1},
                            {SunRule::din5034_equinox, 82.0, 0.3, 5.86, 1},
                            {SunRule::tno_light, 52.1, -11.3, -0.57, 1},
                            {SunRule::tno_strict, 52.1, -20.1, -0.57, 1},
                            {SunRule::tno_strict, 68.0, -20.1, -0.57, 1},
                            {SunRule::tno_strict, 69.0, -20.1, -0.57, 0},
                            {SunRule::tno_strict, 71.5, -20.1, -0.57, 0},
                            {SunRule::the_hague, 52.1, -11.3, 9.91, 1},
                            {SunRule::the_hague, 70.0, -11.3, 9.91, 0},
                            {SunRule::bre209, 51.5, 0.3, 9.91, 1},
                            {SunRule::en17037, 57.7, 0.3, -0.57, 3},
                            {SunRule::en17037, -33.9, 0.3, -0.57, 3}}) {
    District d;
    d.options.date = "";
    d.options.facades = false;
    d.options.rule = c.rule;
    d.options.latitude_deg = c.latitude;
    const SunlightResult result = d.compute();
    SCOPED_TRACE(result.rule->name);
    const double expected = hours_above(c.latitude, c.declination, c.altitude);
    EXPECT_NEAR(result.possible_h, expected, 0.25) << c.latitude;
    ASSERT_EQ(result.outputs.size(), 4u);
    EXPECT_NEAR(result.outputs[0].maximum, result.possible_h, 1e-6);
    EXPECT_EQ(result.outputs[2].minimum, c.grade) << c.latitude;
    EXPECT_EQ(result.rule->grades[size_t(c.grade)].ground_percent, 100);
  }
}

TEST(SunRules, PeriodsIncludeTheirDaysOfTheFewestHours) {
  struct Period {
    SunRule rule;
    const char *first, *last;
    double least_altitude;
  };
  for (const Period& p : {Period{SunRule::tno_strict, "2025-01-21", "2025-11-22", 0},
                          Period{SunRule::tno_light, "2025-02-19", "2025-10-21", 0},
                          Period{SunRule::the_hague, "2025-02-19", "2025-10-21", 10}}) {
    District d;
    d.options.facades = false;
    d.options.latitude_deg = 59.32;
    d.options.minutes = 1;
    d.options.least_altitude_deg = p.least_altitude;
    d.options.date = p.first;
    const double first = d.compute().possible_h;
    d.options.date = p.last;
    const double last = d.compute().possible_h;
    d.options.date = "";
    d.options.least_altitude_deg = {};
    d.options.rule = p.rule;
    EXPECT_EQ(d.compute().possible_h, std::min(first, last)) << d.compute().rule->name;
  }
}

TEST(SunRules, CountTheirHoursOfTheDay) {
  District d;
  d.options.date = "";
  d.options.facades = false;
  d.options.rule = SunRule::solklart;
  const SunlightResult result = d.compute();
  EXPECT_EQ(result.possible_h, 8) << "from 9 to 17";
  EXPECT_EQ(result.from, "2025-03-21");
  d.options.least_altitude_deg = 25;
  EXPECT_NEAR(d.compute().possible_h, hours_above(57.7, 0.3, 24.96), 0.25)
      << "the option replaces the rule's";
}

// 3 m behind a long slab the sun is hidden all day, 30 m behind it is seen all day; the grades follow from the hours.
TEST(SunRules, GradesAreThoseOfTheHours) {
  District d;
  d.options.date = "";
  d.options.facades = false;
  d.options.rule = SunRule::en17037;
  District::put(d.dsm, 60, 0, 1, District::kSide, 10);
  const SunlightResult result = d.compute();
  const auto grid = [&](const char* name) {
    return io::read_raster(d.options.output.folder / (std::string(name) + ".npy")).values;
  };
  const Array hours = grid("sun_hours"), grades = grid("sun_grade");
  std::vector<double> counts(4);
  for (size_t k = 0; k < hours.as<float>().size(); ++k) {
    const float h = hours.as<float>()[k];
    const int grade = h >= 3.999f ? 3 : h >= 2.999f ? 2 : h >= 1.499f ? 1 : 0;
    EXPECT_EQ(grades.as<float>()[k], float(grade)) << h;
    counts[size_t(grade)] += 1;
  }
  EXPECT_EQ(grades.at<float>(57, 60), 0);
  EXPECT_EQ(grades.at<float>(30, 60), 3);
  for (size_t k = 0; k < 4; ++k)
    EXPECT_NEAR(result.rule->grades[k].ground_percent, counts[k] * 100 / (District::kSide * District::kSide),
                1e-9);
}

// South of the equator three sides of a box see the sun of the equinox for four hours and more.
TEST_F(FacadesOfDistrict, SharesOfARule) {
  District d;
  d.options.date = "";
  d.options.rule = SunRule::en17037;
  d.options.latitude_deg = -33.9;
  District::put(d.dsm, 45, 45, 30, 30, 12);
  const SunlightResult result = d.compute();
  EXPECT_NEAR(result.rule->grades[3].facade_percent, 75, 2);
  EXPECT_NEAR(result.rule->grades[0].facade_percent, 25, 2);
  EXPECT_EQ(result.rule->grades[3].facade_percent, result.rule->grades[3].facade_percent_buildings);
  const std::vector<double> grades = d.by_direction("grade"),
                            bands = d.by_direction("grade_buildings", "bands");
  EXPECT_EQ(grades, (std::vector<double>{3, 3, 0, 3}));
  EXPECT_EQ(bands, grades);
}

TEST(SunRules, RefuseDaysOfTheirOwn) {
  const auto refusal = [](SunRule rule, auto change) {
    District d;
    d.options.date = "";
    d.options.rule = rule;
    change(d.options);
    try {
      d.compute();
    } catch (const InputError& error) {
      EXPECT_FALSE(fs::exists(d.options.output.folder));
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  const auto expect = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(refusal(SunRule::tno_light, [](auto& o) { o.date = "2026-03-21"; }), "which names its own");
  expect(refusal(SunRule::en17037, [](auto& o) { o.from = o.to = "2026-03-21"; }), "which names its own");
  expect(refusal(SunRule::en17037, [](auto& o) { o.date = "2026-03-22"; }), "a day from 02-01 to 03-21");
  expect(refusal(SunRule::en17037, [](auto& o) { o.date = "2026-01-31"; }), "a day from 02-01 to 03-21");
  expect(refusal(SunRule::none, [](auto&) {}), "no day");
}

}  // namespace
}  // namespace lockstep::urban
