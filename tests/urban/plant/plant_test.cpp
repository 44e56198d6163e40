// Trees chosen window by window against plain greedy choice with whole runs of every candidate.
#include "lockstep/urban/plant.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/error.hpp"
#include "urban/plant/objective.hpp"
#include "urban/plant/sites.hpp"
#include "urban/plant/small_district.hpp"
#include "urban/series/arrays.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
using testing::small_square;
using testing::SmallDistrict;

/// A raster of plants with a dome over each trunk, by itself.
std::vector<float> with_domes(std::vector<float> canopy, const SmallDistrict& district, bool trunks,
                              const std::vector<std::pair<int64_t, int64_t>>& trees) {
  const TreeSpecies& s = *district.options.species;
  for (const auto& [row, col] : trees)
    for (size_t p = 0; p < canopy.size(); ++p) {
      const double r = double(int64_t(p) / district.cols - row) * district.pixel_m,
                   c = double(int64_t(p) % district.cols - col) * district.pixel_m;
      const double part = (r * r + c * c) / (s.crown_m * s.crown_m / 4);
      if (part < 1)
        canopy[p] = float(trunks ? s.trunk_m : s.trunk_m + (s.height_m - s.trunk_m) * std::sqrt(1 - part));
    }
  return canopy;
}

/// The objective by a whole run with the trees.
struct Brute {
  const SmallDistrict& district;
  Context& context;
  std::vector<float> canopy = district.read(district.options.city.cdsm);

  double objective(const std::vector<std::pair<int64_t, int64_t>>& trees) const {
    const PlantOptions& o = district.options;
    const auto dsm = district.read(o.city.dsm), dem = district.read(o.city.dem);
    std::vector<float> trunks = canopy;
    for (float& t : trunks) t *= 0.25f;
    SeriesOptions run = o;
    run.outputs = {SeriesOutput::utci};
    const auto keep = [&](const char* name, const std::vector<float>& values) {
      return district.write(name,
                            [&](int64_t r, int64_t c) { return values[size_t(r * district.cols + c)]; });
    };
    run.city.cdsm = keep("brute_cdsm", with_domes(canopy, district, false, trees));
    run.city.tdsm = keep("brute_tdsm", with_domes(trunks, district, true, trees));
    const SeriesGrids grids = compute(context, run, {});
    const size_t pixels = dsm.size();
    const double m2 = district.pixel_m * district.pixel_m;
    double sum = 0, count = 0;
    for (size_t p = 0; p < pixels; ++p) {
      if (dsm[p] - dem[p] >= 2) continue;
      double value = 0;
      for (size_t k = 0; k < grids.times.size(); ++k) {
        const float utci = grids.values[k * pixels + p];
        value += o.objective == "mean-utci" ? double(utci) / double(grids.times.size())
                 : utci > 38.0f             ? m2
                                            : 0;
      }
      sum += value;
      ++count;
    }
    return o.objective == "mean-utci" ? sum / count : sum;
  }
};

void expect_plain_greedy(SmallDistrict& district, double tolerance) {
  Context context({.device = "cpu,interp"});
  PlantOptions& o = district.options;
  const PlantResult found = plant(context, o);
  ASSERT_EQ(int64_t(found.trees.size()), o.trees);
  if (o.objective != "mean-utci") { EXPECT_LT(found.evaluated_share, 0.8) << "the test is of windows"; }
  const Brute brute{district, context};
  std::vector<std::pair<int64_t, int64_t>> trees;
  double now = brute.objective({});
  EXPECT_NEAR(found.before, now, tolerance);
  for (size_t round = 0; round < found.trees.size(); ++round) {
    double most = 0;
    std::pair<int64_t, int64_t> best;
    for (const PlantCandidate& c : found.candidates) {
      if (std::ranges::any_of(trees, [&](const auto& t) {
            return std::hypot(double(t.first - c.row), double(t.second - c.col)) * district.pixel_m <
                   o.species->crown_m - district.pixel_m;
          }))
        continue;
      auto more = trees;
      more.emplace_back(c.row, c.col);
      const double gain = now - brute.objective(more);
      if (round == 0) { EXPECT_NEAR(c.first_gain, gain, tolerance) << c.row << ", " << c.col; }
      if (gain > most + tolerance) most = gain, best = more.back();
    }
    EXPECT_EQ(std::pair(found.trees[round].row, found.trees[round].col), best) << "tree " << round + 1;
    EXPECT_NEAR(found.trees[round].gain, most, tolerance);
    trees.push_back(best);
    now = brute.objective(trees);
  }
  EXPECT_NEAR(found.after, now, tolerance);
  EXPECT_NEAR(found.before - found.after, found.trees.back().total, tolerance);
}

// A wall between the sites, so that a tree changes parts of what others change.
TEST(Plant, HoursOfHeatFallAsPlainGreedySays) {
  SmallDistrict district(
      44, 3.0, [](int64_t, int64_t) { return 12.0; },
      [](int64_t r, int64_t c) { return (r > 19 && r < 23 && c < 36) || (r < 8 && c < 14) ? 25.0 : 0.0; },
      [](int64_t r, int64_t c) { return r == 38 && c == 7 ? 7.0 : 0.0; });
  district.options.species = {8, 2, 9};
  district.options.trees = 3;
  district.options.spacing_m = 33;
  district.options.least_altitude_deg = 0;
  district.options.before_after = false;
  expect_plain_greedy(district, 1e-9);
}

TEST(Plant, TheMeanFallsAsPlainGreedySays) {
  SmallDistrict district = small_square(36);
  district.options.objective = "mean-utci";
  district.options.species = {6, 0, 4};
  district.options.trees = 2;
  district.options.spacing_m = 9;
  district.options.least_altitude_deg = 0;
  district.options.before_after = false;
  expect_plain_greedy(district, 2e-6);
}

// Beyond its reach a tree changes no bit, on a slope and with a low sun; buildings in between shorten it.
TEST(Plant, ATreeChangesNothingBeyondItsReach) {
  SmallDistrict district(
      72, 2.0, [](int64_t r, int64_t c) { return 5 + 0.15 * double(r) + 0.05 * double(c); },
      [](int64_t r, int64_t c) { return (r > 60 && c > 60) || (r > 20 && r < 24) ? 20.0 : 0.0; },
      [](int64_t r, int64_t c) { return r == 40 && c == 60 ? 5.0 : 0.0; });
  district.weather({17, 18, 19});
  Context context({.device = "cpu,interp"});
  SeriesOptions run = district.options;
  run.outputs = {SeriesOutput::tmrt, SeriesOutput::kup, SeriesOutput::lup, SeriesOutput::gvf,
                 SeriesOutput::shadow};
  run.city.tdsm = district.write("tdsm", [](int64_t, int64_t) { return 0.0; });
  const SeriesInputs inputs = read_series_inputs(run, {});
  const auto before = compute(context, run, {}).values;
  const TreeSpecies species{4, 1, 6};
  const auto crown = crown_of(species, 2);
  const TreeReaches reaches(inputs, crown, CanopyHeights::above_ground, 0);
  int64_t least = district.rows * district.cols;
  for (const PlantSite site : {PlantSite{8, 9}, {34, 35}, {66, 12}}) {
    auto canopy = district.read(district.options.city.cdsm), trunk = district.read(run.city.tdsm);
    for (const CrownPixel& c : crown) {
      const auto p = size_t((site.row + c.row) * district.cols + site.col + c.col);
      canopy[p] = c.top_m;
      trunk[p] = c.trunk_m;
    }
    SeriesOptions planted = run;
    planted.city.cdsm = district.write("c", [&](int64_t r, int64_t c) { return canopy[size_t(r * 72 + c)]; });
    planted.city.tdsm = district.write("t", [&](int64_t r, int64_t c) { return trunk[size_t(r * 72 + c)]; });
    const auto after = compute(context, planted, {}).values;
    const TreeReach reach = reaches.reach_of(site);
    least = std::min(least, std::ranges::count(reach.changed, 1));
    int64_t changed = 0;
    for (size_t k = 0; k < after.size(); ++k) {
      if (before[k] == after[k]) continue;
      ++changed;
      const int64_t p = int64_t(k) % (72 * 72);
      const int64_t row = p / 72 - reach.box.row, col = p % 72 - reach.box.col;
      ASSERT_TRUE(row >= 0 && row < reach.box.rows && col >= 0 && col < reach.box.cols)
          << p / 72 << ", " << p % 72;
      EXPECT_EQ(reach.changed[size_t(row * reach.box.cols + col)], 1) << p / 72 << ", " << p % 72;
    }
    EXPECT_GT(changed, 500);
  }
  EXPECT_LT(least, 72 * 72 / 2);
}

TEST(Plant, CrownsAreHalfEllipsoids) {
  const auto crown = crown_of({10, 4, 8}, 0.5);
  double volume = 0;
  for (const CrownPixel& c : crown) {
    volume += (double(c.top_m) - 4) * 0.25;
    EXPECT_EQ(c.trunk_m, 4);
    EXPECT_LE(c.top_m, 10);
  }
  EXPECT_NEAR(volume, 2.0 / 3 * std::numbers::pi * 16 * 6, 2);
  EXPECT_EQ(crown_of({3, 0, 1}, 2).size(), 1u) << "a crown within a pixel";
}

TEST(Plant, SpeciesThatNoTreeHas) {
  for (const char* text :
       {"3,5,4", "4,4,4", "10,3", "10,3,0", "-1,0,2", "10,-1,4", "10,3,6,", "high,3,6", "200,3,6", "nan,1,2"})
    EXPECT_THROW(parse_species(text), InputError) << text;
  const TreeSpecies species = parse_species("10,3,6.5");
  EXPECT_EQ(species.height_m, 10);
  EXPECT_EQ(species.trunk_m, 3);
  EXPECT_EQ(species.crown_m, 6.5);
}

// Absolute canopies without trunk heights, ground below zero: what is written gives, in a run of its own, what was found.
TEST(Plant, ItsRastersAreThoseOfItsNumbers) {
  SmallDistrict district(
      32, 1.0, [](int64_t r, int64_t) { return -3 + 0.1 * double(r); },
      [](int64_t r, int64_t c) { return r < 6 && c < 9 ? 12.0 : 0.0; },
      [](int64_t r, int64_t c) { return r > 26 && c > 26 ? -3 + 0.1 * double(r) + 6 : 0.0; });
  PlantOptions& o = district.options;
  o.city.canopy_heights = CanopyHeights::absolute;
  o.objective = "hours>36";
  o.species = {7, 2, 5};
  o.trees = 2;
  o.spacing_m = 10;
  Context context({.device = "cpu,interp"});
  const PlantResult found = plant(context, o);
  ASSERT_EQ(found.trees.size(), 2u);
  SeriesOptions after = o;
  after.city.cdsm = found.cdsm;
  after.city.tdsm = found.tdsm;
  after.outputs = {SeriesOutput::utci};
  const SeriesGrids grids = compute(context, after, {});
  const auto dsm = district.read(o.city.dsm), dem = district.read(o.city.dem);
  double hours = 0;
  for (size_t k = 0; k < grids.values.size(); ++k)
    if (const size_t p = k % dsm.size(); dsm[p] - dem[p] < 2) hours += grids.values[k] > 36.0f;
  EXPECT_EQ(found.after, hours);
  for (const fs::path& file : {found.curve, found.before_run / "run.json", found.after_run / "run.json",
                               found.comparison, o.folder / "run.json"})
    EXPECT_TRUE(fs::exists(file)) << file;
  EXPECT_EQ(found.host_stages.front().stage, "read");
}

TEST(Plant, DevicesChooseAlike) {
  SmallDistrict district = small_square(20);
  PlantOptions& o = district.options;
  o.objective = "mean-utci";
  o.species = {3, 1, 3};
  o.trees = 2;
  o.spacing_m = 9;
  o.before_after = false;
  district.weather({13});
  std::vector<PlantResult> found;
  for (const char* device : {"cpu", "interp"}) {
    Context context({.device = device});
    found.push_back(plant(context, o));
  }
  ASSERT_EQ(found[0].candidates.size(), found[1].candidates.size());
  for (size_t k = 0; k < found[0].candidates.size(); ++k)
    EXPECT_EQ(found[0].candidates[k].last_gain, found[1].candidates[k].last_gain);
  EXPECT_EQ(found[0].after, found[1].after);
}

TEST(Plant, PeopleDecideWhereTheyAre) {
  SmallDistrict district = small_square(36);
  PlantOptions& o = district.options;
  o.species = {8, 2, 5};
  o.trees = 1;
  o.spacing_m = 6;
  o.before_after = false;
  o.least_altitude_deg = 30;
  write_file(district.folder / "people.csv", "people,wkt\n40,\"POLYGON ((24 24, 30 24, 30 30, 24 30))\"\n");
  o.objective = (district.folder / "people.csv").string();
  Context context({.device = "cpu,interp"});
  const PlantResult by_area = plant(context, o);
  ASSERT_EQ(by_area.trees.size(), 1u);
  EXPECT_NEAR(by_area.trees[0].x, 27, 6);
  EXPECT_NEAR(by_area.trees[0].y, 27, 6);
  // y 24 to 30 is row 6 to 12 of 36 from the north; 40 people or 80, the mean over people is one.
  o.objective =
      district
          .write("people",
                 [](int64_t r, int64_t c) { return r >= 6 && r < 12 && c >= 24 && c < 30 ? 80.0 / 36 : 0.0; })
          .string();
  const PlantResult by_pixel = plant(context, o);
  EXPECT_EQ(by_pixel.trees[0].row, by_area.trees[0].row);
  EXPECT_NEAR(by_pixel.trees[0].gain, by_area.trees[0].gain, 1e-5);
}

// Of an area that the raster cuts, only the people of the part inside count.
TEST(Plant, PeopleBeyondTheRasterAreNotMovedInside) {
  SmallDistrict district = small_square(36);
  PlantOptions& o = district.options;
  write_file(district.folder / "people.csv",
             "people,wkt\n40,\"POLYGON ((24 24, 30 24, 30 30, 24 30))\"\n"
             "90,\"POLYGON ((30 6, 48 6, 48 12, 30 12))\"\n");
  o.objective = (district.folder / "people.csv").string();
  const PlantObjective objective = read_objective(o, read_series_inputs(o, {}));
  EXPECT_NEAR(1 / objective.scale, 40 + 30, 1e-4) << "a third of the second area is inside";
  EXPECT_NEAR(objective.weights[size_t(26 * 36 + 33)], 30.0 / 36, 1e-6);
}

TEST(Plant, SaysWhyThereIsNoRoom) {
  SmallDistrict district = small_square(30);
  PlantOptions& o = district.options;
  o.species = {8, 2, 5};
  o.trees = 1;
  o.before_after = false;
  Context context({.device = "cpu,interp"});
  const auto error_of = [&] {
    try {
      plant(context, o);
    } catch (const Error& error) { return std::string(error.what()); }
    return std::string("none");
  };
  const auto allow = [&](const char* wkt) {
    write_file(district.folder / "areas.csv", std::string("wkt\n\"") + wkt + "\"\n");
    o.allowed = district.folder / "areas.csv";
  };
  allow("POLYGON ((0 25, 8 25, 8 30, 0 30))");  // on the roof
  EXPECT_NE(error_of().find("no room for a tree"), std::string::npos) << error_of();
  allow("POLYGON ((100 100, 101 100, 101 101, 100 101))");
  EXPECT_NE(error_of().find("all areas lie outside of the raster"), std::string::npos) << error_of();
  allow("POLYGON ((2 2, 8 8, 8 2, 2 8))");
  EXPECT_NE(error_of().find("areas.csv"), std::string::npos) << error_of();
  EXPECT_FALSE(fs::exists(o.folder));
  o.allowed.clear();
  for (const char* objective : {"hours>", "hours>hot", "mean", "shade"}) {
    o.objective = objective;
    EXPECT_NE(error_of().find("hours>BOUND"), std::string::npos) << error_of();
  }
}

}  // namespace
}  // namespace lockstep::urban
