// Hours of sun by closed forms: the length of a day, and the shade of a slab at the equinox.
#include "lockstep/urban/sunlight.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numbers>

#include "core/temporary_folder.hpp"
#include "io/rasters/raster.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/report.hpp"
#include "urban/sunlight/sun_positions.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
using lockstep::test::TemporaryFolder;

constexpr double kRadian = std::numbers::pi / 180;

SunDays day_at(double latitude, const char* date) {
  SunDays days;
  days.first = io::parse_iso_time(std::string(date) + "T00:00")->minutes;
  days.latitude_deg = latitude;
  days.minutes = 1;
  return days;
}

/// Hours between the rising and the setting of a point at `altitude`, by the declination of the day.
double day_length(double latitude, double declination, double altitude) {
  const double c =
      (std::sin(altitude * kRadian) - std::sin(latitude * kRadian) * std::sin(declination * kRadian)) /
      (std::cos(latitude * kRadian) * std::cos(declination * kRadian));
  return 2 * std::acos(c) / kRadian / 15;
}

// The equinox of 2026 is on 20 March at 14:46 UT, from when on the declination grows by 0.395° a day. The horizon's refraction lifts the sun by 0.57°.
TEST(SunDirections, LastAsLongAsTheDay) {
  const auto hours = [](const SunDays& days) { return double(sun_directions(days).size()) / 60; };
  EXPECT_NEAR(hours(day_at(57.7, "2026-03-21")), day_length(57.7, 0.35, -0.57), 0.05);
  EXPECT_NEAR(hours(day_at(57.7, "2026-06-21")), day_length(57.7, 23.44, -0.57), 0.05);
  EXPECT_NEAR(hours(day_at(-33.9, "2026-12-21")), day_length(-33.9, -23.44, -0.57), 0.05);
  EXPECT_EQ(hours(day_at(70, "2026-06-21")), 24);
  EXPECT_EQ(hours(day_at(70, "2026-12-21")), 0);
  SunDays high = day_at(57.7, "2026-06-21");
  high.least_altitude_deg = 10;
  EXPECT_NEAR(hours(high), day_length(57.7, 23.44, 9.91), 0.05);
  SunDays week = day_at(57.7, "2026-03-21");
  week.days = 7;
  EXPECT_NEAR(hours(week), 7 * day_length(57.7, 1.53, -0.57), 0.1)
      << "by the declination of the day in the middle";
}

// The sun of a day does not depend on the clock that names it, but for the day that begins earlier.
TEST(SunDirections, CountFromTheNorthOfTheGrid) {
  SunDays days = day_at(57.7, "2026-03-21");
  days.minutes = 60;
  const auto plain = sun_directions(days);
  days.convergence_deg = 5;
  const auto turned = sun_directions(days);
  ASSERT_EQ(plain.size(), turned.size());
  for (size_t k = 0; k < plain.size(); ++k)
    EXPECT_NEAR(plain[k].azimuth_deg - turned[k].azimuth_deg, 5, 1e-9);
  EXPECT_NEAR(plain[plain.size() / 2].altitude_deg, 90 - 57.7 + 0.35, 0.6) << "noon at longitude 0";
}

constexpr int64_t kRows = 81, kCols = 201, kSlab = 40;  // of 1 m; the slab's row

struct SunCase {
  TemporaryFolder folder;
  SunlightOptions options;
  /// Flat ground with a slab 10 m high from the western to the eastern edge: of stone, or a canopy down to the ground.
  explicit SunCase(bool stone, bool leaves) {
    const auto write = [&](const char* name, bool slab) {
      std::vector<float> values(kRows * kCols, 0.0f);
      for (int64_t c = 0; slab && c < kCols; ++c) values[size_t(kSlab * kCols + c)] = 10;
      io::RasterGrid grid;
      grid.rows = kRows;
      grid.cols = kCols;
      io::write_raster(folder / name, grid, Array::of(std::move(values), {kRows, kCols}));
    };
    write("dsm.npy", stone);
    write("dem.npy", false);
    options.city.dsm = folder / "dsm.npy";
    options.city.pixel_size_m = 1;
    if (leaves) {
      write("cdsm.npy", true);
      options.city.cdsm = folder / "cdsm.npy";
      options.city.trunk_ratio = 0;
    }
    options.date = "2026-03-21";
    options.latitude_deg = 57.7;
    options.longitude_deg = 0;
    options.output = {folder / "out", GridFormat::npy, false};
  }
  SunlightResult compute() const {
    Context context(ContextOptions{.device = "cpu,interp"});
    return run(context, options);
  }
  /// Of the middle column, `metres` north of the slab.
  double hours(const char* grid, int64_t metres) const {
    float value = 0;
    io::RasterReader::open(options.output.folder / (std::string(grid) + ".npy"))
        ->read(kSlab - metres, kCols / 2, 1, 1, &value);
    return static_cast<double>(value);
  }
};

// At the equinox the sun keeps to a plane through east and west: a long wall's shadow is h · tan(latitude), 15.8 m, all day.
TEST(Sunlight, TheShadeOfASlabAtTheEquinox) {
  const SunCase slab(true, false);
  const SunlightResult result = slab.compute();
  EXPECT_EQ(result.days, 1);
  EXPECT_NEAR(result.possible_h, day_length(57.7, 0.35, -0.57), 0.2);
  EXPECT_DOUBLE_EQ(result.possible_h, double(result.positions) / 6);
  EXPECT_EQ(result.utc_offset_h, 0);
  // Past the ends of the wall the low sun is seen for some minutes.
  for (const int64_t metres : {1, 3, 8}) EXPECT_LT(slab.hours("sun_hours", metres), 1.5) << metres;
  EXPECT_LT(slab.hours("sun_hours", 13), 2);
  EXPECT_GT(slab.hours("sun_hours", 18), result.possible_h - 1.5);
  EXPECT_GT(slab.hours("sun_hours", 30), result.possible_h - 1.5);
  // On the sunny side only a sun north of east and west is hidden: none at the equinox but for a few minutes.
  for (const int64_t metres : {-1, -5, -20})
    EXPECT_GT(slab.hours("sun_hours", metres), result.possible_h - 0.5);
  EXPECT_EQ(slab.hours("sun_hours", 8), slab.hours("sun_hours_buildings", 8)) << "there are no plants";
  EXPECT_NEAR(slab.hours("sun_hours", 0), result.possible_h, 1e-5) << "on top";
}

TEST(Sunlight, PlantsShadeOneGridOfTwo) {
  const SunCase hedge(false, true), wall(true, false);
  const SunlightResult result = hedge.compute();
  wall.compute();
  for (const int64_t metres : {-20, 3, 8, 13, 25}) {
    EXPECT_NEAR(hedge.hours("sun_hours_buildings", metres), result.possible_h, 1e-5) << metres;
    EXPECT_NEAR(hedge.hours("sun_hours", metres), wall.hours("sun_hours", metres), 0.5) << metres;
  }
}

// People are on the ground: the sunny roof counts in no statistic, and the mask is a grid.
TEST(Sunlight, StatisticsAreOfTheGround) {
  SunCase slab(true, false);
  const OutputGrid all = slab.compute().outputs.at(0);
  slab.options.city.dem = slab.folder / "dem.npy";
  const SunlightResult ground = slab.compute();
  ASSERT_EQ(ground.outputs.size(), 3u);
  EXPECT_EQ(ground.outputs[2].name, "ground");
  EXPECT_LT(ground.outputs[0].mean, all.mean);
  EXPECT_EQ(slab.hours("ground", 0), 0) << "on top";
  EXPECT_EQ(slab.hours("ground", 3), 1);
  slab.options.include_roofs = true;
  EXPECT_EQ(slab.compute().outputs.at(0).mean, all.mean);
}

TEST(Sunlight, APeriodIsTheSumOfItsDays) {
  SunCase c(true, false);
  c.options.minutes = 30;
  double sum = 0;
  for (const char* date : {"2026-03-21", "2026-03-22"}) {
    c.options.date = date;
    c.compute();
    sum += c.hours("sun_hours", 13);
  }
  c.options.date = "";
  c.options.from = "2026-03-21";
  c.options.to = "2026-03-22";
  const SunlightResult result = c.compute();
  EXPECT_EQ(result.days, 2);
  EXPECT_EQ(c.hours("sun_hours", 13), sum);
  EXPECT_NE(to_json(result).find("\"days\":2"), std::string::npos);
}

// As many suns in other places, and the same suns under another rule, give other hours and grades.
TEST(Sunlight, KeptTilesBelongToTheirSunsAndRule) {
  SunCase c(true, false);
  c.options.minutes = 60;
  c.options.tiles.resume_folder = c.folder / "tiles";
  const SunlightResult first = c.compute();
  EXPECT_EQ(c.compute().tiles.resumed, first.tiles.tiles) << "the same day";
  c.options.date = "2026-03-22";
  const SunlightResult next = c.compute();
  ASSERT_EQ(next.positions, first.positions);
  EXPECT_EQ(next.tiles.resumed, 0);
  c.options.date = "";
  c.options.least_altitude_deg = 10;
  c.options.rule = SunRule::en17037;
  const SunlightResult three = c.compute();
  c.options.rule = SunRule::bre209;
  const SunlightResult one = c.compute();
  ASSERT_EQ(one.positions, three.positions);
  EXPECT_EQ(one.tiles.resumed, 0);
  EXPECT_LE(one.outputs[2].maximum, 1) << "it has one threshold, EN 17037 three";
}

TEST(Sunlight, RefusesWhatIsNoDay) {
  const auto refusal = [](auto change) {
    SunCase c(false, false);
    change(c.options);
    try {
      c.compute();
    } catch (const InputError& error) {
      EXPECT_FALSE(fs::exists(c.options.output.folder));
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  const auto expect = [&](const char* part, auto change) {
    const std::string text = refusal(change);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect("no day '2026-02-30'", [](SunlightOptions& o) { o.date = "2026-02-30"; });
  expect("no day", [](SunlightOptions& o) { o.date = ""; });
  expect("a day and a period", [](SunlightOptions& o) { o.from = o.to = "2026-03-21"; });
  expect("half a period", [](SunlightOptions& o) { o.date = "", o.from = "2026-03-21"; });
  expect("an end after the start",
         [](SunlightOptions& o) { o.date = "", o.from = "2026-03-21", o.to = "2026-03-20"; });
  expect("parts of 7 min", [](SunlightOptions& o) { o.minutes = 7; });
  expect("only one of latitude and longitude", [](SunlightOptions& o) { o.longitude_deg.reset(); });
  expect("has no location on Earth",
         [](SunlightOptions& o) { o.longitude_deg.reset(), o.latitude_deg.reset(); });
}

}  // namespace
}  // namespace lockstep::urban
