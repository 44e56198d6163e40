// Finished tiles outlive a killed run, and are taken over by the same computation alone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "core/files/folder_lock.hpp"
#include "core/platform/process.hpp"
#include "lockstep/context.hpp"
#include "lockstep/error.hpp"
#include "urban/run/victim.hpp"
#include "urban/scenes.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
constexpr char kVictimVariable[] = "LOCKSTEP_TEST_RESUME_VICTIM";  // "<pipe to write to> <folder>"
constexpr int kFinishedBeforeTheKill = 3;

TileOptions tiles_of_32(const fs::path& folder) {
  TileOptions options;
  options.side = 32;
  options.workers = 1;
  options.resume_folder = folder;
  return options;
}

/// All that a computation of sky view factors depends on.
struct Sky {
  CityInput city = random_city(64, 64, 77);
  SkyOptions options;
  Numerics numerics = Numerics::exact;

  Sky() {
    const Raster absent;
    city.tdsm = absent;  // so that the trunk ratio matters
    options.patches = SkyPatches::p145;
  }
  SkyViewFactors compute(const TileOptions& tiles, TileReport* report = nullptr) const {
    ContextOptions on{.device = "cpu"};
    on.numerics = numerics;
    Context context(on);
    return compute_sky_view_factors(context, city, options, tiles, report);
  }
};

void expect_equal(const SkyViewFactors& got, const SkyViewFactors& expected, const CityInput& city) {
  const City prepared = prepare_city(city);
  for (size_t g = 0; g < kSkyViewGrids; ++g)
    for (size_t p = 0; p < got.grids[g].pixels().size(); ++p) {
      if (prepared.is_missing(static_cast<int64_t>(p))) continue;
      ASSERT_EQ(got.grids[g].pixels()[p], expected.grids[g].pixels()[p]) << kSkyViewNames[g] << " at " << p;
    }
}

class Resume : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      Context context(ContextOptions{.device = "cpu"});
    } catch (const UnsupportedError& error) { GTEST_SKIP() << error.what(); }
    std::string name = (fs::temp_directory_path() / "lockstep-resume-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  fs::path folder_;
};

/// The run that is killed, a process of its own: stops after some tiles, says so, and waits for its end.
TEST(ResumeVictim, DISABLED_Run) {
  const auto victim = test::Victim::here(kVictimVariable);
  if (!victim) GTEST_SKIP() << "run by Resume.AfterKill only";
  const Sky sky;
  Context context(ContextOptions{.device = "cpu"});
  int finished = 0;
  stream_sky_view_factors(context, sky.city, sky.options, tiles_of_32(victim->folder), [&](const SkyTile&) {
    if (++finished == kFinishedBeforeTheKill) victim->wait_for_the_end();
  });
}

TEST_F(Resume, AfterKill) {
  ASSERT_NO_FATAL_FAILURE(test::kill_victim(kVictimVariable, "ResumeVictim.DISABLED_Run", folder_));
  const Sky sky;
  TileReport report;
  const SkyViewFactors resumed = sky.compute(tiles_of_32(folder_), &report);
  EXPECT_EQ(report.resumed, kFinishedBeforeTheKill);
  EXPECT_EQ(report.tiles, 4);
  expect_equal(resumed, sky.compute({}), sky.city);
}

TEST_F(Resume, AnyOtherInputOrOptionTakesNothingOver) {
  using Change = std::function<void(Sky&)>;
  const std::pair<const char*, Change> changes[] = {
      {"a height", [](Sky& s) { s.city.dsm.at(5, 9) += 0.25f; }},
      {"a hole", [](Sky& s) { s.city.dsm.at(50, 9) = std::numeric_limits<float>::quiet_NaN(); }},
      {"a plant", [](Sky& s) { s.city.cdsm.at(40, 40) += 1; }},
      {"trunks", [](Sky& s) { s.city.tdsm = Raster(64, 64, 1.0f); }},
      {"trunk ratio", [](Sky& s) { s.city.trunk_ratio = 0.5; }},
      {"no plants", [](Sky& s) { s.city.cdsm = {}; }},
      {"absolute canopy", [](Sky& s) { s.city.canopy_heights = CanopyHeights::absolute; }},
      {"DSM above ground",
       [](Sky& s) {
         s.city.dem = Raster(64, 64, 0.0f);
         for (int64_t k = 0; k < 64; ++k) s.city.dem.at(k, k) = 3;
         s.city.dsm_heights = DsmHeights::above_ground;
       }},
      {"pixel size", [](Sky& s) { s.city.pixel_size_m = 1.5; }},
      {"patches", [](Sky& s) { s.options.patches = SkyPatches::p153; }},
      {"zenith", [](Sky& s) { s.options.zenith = ZenithRule::open; }},
      {"annuli", [](Sky& s) { s.options.edges = AnnulusEdges::solweig; }},
      {"reach", [](Sky& s) { s.options.rays.max_reach_m = 20; }},
      {"states", [](Sky& s) { s.options.keep_states = true; }},
      {"numerics", [](Sky& s) { s.numerics = Numerics::fast; }},
  };
  for (const auto& [what, change] : changes) {
    SCOPED_TRACE(what);
    Sky before, after;
    change(after);
    TileReport report;
    before.compute(tiles_of_32(folder_));
    before.compute(tiles_of_32(folder_), &report);
    EXPECT_EQ(report.resumed, 4);
    const SkyViewFactors ours = after.compute(tiles_of_32(folder_), &report);
    EXPECT_EQ(report.resumed, 0);
    expect_equal(ours, after.compute({}), after.city);
  }
}

TEST_F(Resume, TilesOfAnotherCityAreForeignWhateverTheManifestSays) {
  const Sky ours;
  Sky other;
  other.city = random_city(64, 64, 78);
  other.city.tdsm = {};
  const fs::path theirs = folder_ / "theirs";
  other.compute(tiles_of_32(theirs));
  ours.compute(tiles_of_32(folder_));
  fs::copy_file(theirs / "0_32.tile", folder_ / "0_32.tile", fs::copy_options::overwrite_existing);
  TileReport report;
  const SkyViewFactors again = ours.compute(tiles_of_32(folder_), &report);
  EXPECT_EQ(report.resumed, 3);
  expect_equal(again, ours.compute({}), ours.city);
}

TEST_F(Resume, OtherSunsAndWallsTakeNothingOver) {
  const CityInput city = random_city(64, 64, 5);
  Context context(ContextOptions{.device = "cpu"});
  const TileOptions tiles = tiles_of_32(folder_);
  TileReport report;
  const auto resumed = [&](auto compute) {
    compute();
    return report.resumed;
  };
  const auto shadows = [&](Direction sun, RayOptions rays = {}) {
    return [&, sun, rays] { compute_shadows(context, city, sun, rays, tiles, &report); };
  };
  EXPECT_EQ(resumed(shadows({180, 30})), 0);
  EXPECT_EQ(resumed(shadows({180, 30})), 4);
  EXPECT_EQ(resumed(shadows({180, 31})), 0);
  EXPECT_EQ(resumed(shadows({181, 31})), 0);
  EXPECT_EQ(resumed(shadows({181, 31}, {15.0})), 0);
  const auto walls = [&](WallOptions options) {
    return [&, options] { compute_walls(context, city, options, tiles, &report); };
  };
  EXPECT_EQ(resumed(walls({})), 0);
  EXPECT_EQ(resumed(walls({})), 4);
  EXPECT_EQ(resumed(walls({.minimum_height_m = 2})), 0);
  EXPECT_EQ(resumed(walls({.minimum_height_m = 2, .ties = WallTies::first})), 0);
  Walls found = compute_walls(context, city);
  const auto with_walls = [&] { compute_wall_shadows(context, city, found, {180, 30}, {}, tiles, &report); };
  EXPECT_EQ(resumed(with_walls), 0);
  EXPECT_EQ(resumed(with_walls), 4);
  found.aspect.at(3, 3) += 1;
  EXPECT_EQ(resumed(with_walls), 0);
}

TEST_F(Resume, LessMemoryThanBeforeIsNoReasonToRefuse) {
  Sky sky;
  sky.city = random_city(400, 400, 3);
  sky.options.rays.max_reach_m = 10;
  TileOptions large = tiles_of_32(folder_);
  large.side = 400;
  TileReport report;
  const SkyViewFactors whole = sky.compute(large, &report);
  TileOptions little = large;
  little.side = 0;
  little.memory_bytes =
      platform::resident_bytes() + (int64_t{12} << 20);  // one tile of 400 needs some 45 MiB
  const SkyViewFactors tiled = sky.compute(little, &report);
  EXPECT_LT(report.side, 400);
  EXPECT_EQ(report.resumed, 0);
  expect_equal(tiled, whole, sky.city);
  TileOptions same = little;
  same.memory_bytes = 0;
  sky.compute(same, &report);
  EXPECT_EQ(report.resumed, report.tiles) << "the side of the earlier run is kept where it fits";
}

TEST_F(Resume, AFolderBelongsToOneProcessAtATime) {
  const Sky sky;
  const FolderLock held(folder_);
  try {
    sky.compute(tiles_of_32(folder_));
    FAIL() << "another holds the folder";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("process " + std::to_string(::getpid())), std::string::npos)
        << error.what();
  }
}

TEST_F(Resume, TemporaryFilesOfTheDeadAreRemoved) {
  const auto touch = [&](const std::string& name) {
    std::FILE* file = std::fopen((folder_ / name).c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fclose(file);
  };
  pid_t dead = 0;
  std::string program = "true";
  char* arguments[] = {program.data(), nullptr};
  ASSERT_EQ(::posix_spawnp(&dead, "true", nullptr, nullptr, arguments, environ), 0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  const std::string orphan = ".svf.tif." + std::to_string(dead) + "-3.part",
                    alive = ".svf.tif." + std::to_string(::getpid()) + "-3.part";
  for (const std::string& name : {orphan, alive, std::string("svf.tif"), std::string(".hidden.part")})
    touch(name);
  { const FolderLock lock(folder_); }
  EXPECT_FALSE(fs::exists(folder_ / orphan));
  for (const std::string& name : {alive, std::string("svf.tif"), std::string(".hidden.part")})
    EXPECT_TRUE(fs::exists(folder_ / name)) << name;
  EXPECT_FALSE(fs::exists(folder_ / ".lockstep.lock"));
}

}  // namespace
}  // namespace lockstep::urban
