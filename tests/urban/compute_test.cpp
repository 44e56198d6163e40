// The stages on devices against the plain reference: every grid, every bit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "lockstep/error.hpp"
#include "rasters.hpp"
#include "urban/scenes.hpp"
#include "urban/sky/sky_plan.hpp"

namespace lockstep::urban {
namespace {

using testing::tiny_city;

/// NaN equals NaN; else the same bits but for the sign of zero.
void expect_same(const Raster& ours, const std::vector<float>& expected, const City& city,
                 const std::string& what) {
  ASSERT_EQ(ours.pixels().size(), expected.size()) << what;
  int differing = 0;
  for (size_t p = 0; p < expected.size(); ++p) {
    const bool missing = city.is_missing(static_cast<int64_t>(p));
    const bool same = missing ? std::isnan(ours.pixels()[p]) : ours.pixels()[p] == expected[p];
    if (!same && differing++ < 5)
      ADD_FAILURE() << what << " (" << p / static_cast<size_t>(city.cols) << ","
                    << p % static_cast<size_t>(city.cols) << "): " << ours.pixels()[p] << ", expected "
                    << expected[p];
  }
  EXPECT_EQ(differing, 0) << what;
}

ContextOptions on(const std::string& device) {
  ContextOptions options;
  options.device = device;
  return options;
}

/// Runs on each device that this build has and that needs no special hardware.
class Compute : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      context_ = std::make_unique<Context>(on(GetParam()));
    } catch (const UnsupportedError& error) { GTEST_SKIP() << error.what(); }
  }
  Context& context() { return *context_; }
  bool quick() const { return std::string(GetParam()) != "interp"; }

 private:
  std::unique_ptr<Context> context_;
};

std::vector<float> as_floats(const std::vector<SkyState>& states, bool (*bit)(SkyState)) {
  std::vector<float> out;
  for (SkyState s : states) out.push_back(bit(s) ? 1.0f : 0.0f);
  return out;
}

void expect_shadows(const Shadows& ours, const City& city, const reference::Cast<float>& rays,
                    const std::string& what) {
  expect_same(ours.buildings, as_floats(rays.state, reference::sees_past_buildings), city,
              what + " buildings");
  expect_same(ours.vegetation, as_floats(rays.state, reference::sees_past_vegetation), city,
              what + " vegetation");
  expect_same(ours.vegetation_before_buildings,
              as_floats(rays.state, reference::no_vegetation_before_building), city, what + " before");
}

TEST_P(Compute, ShadowsOfRandomCities) {
  unsigned seed = 0;
  for (auto [rows, cols] :
       {std::array<int64_t, 2>{1, 1}, {1, 40}, {40, 1}, {3, 5}, {33, 61}, {70, 45}, {300, 3}}) {
    for (bool plants : {true, false}) {
      ++seed;
      const CityInput input =
          random_city(rows, cols, seed, {.vegetation = plants, .pixel_size_m = seed % 3 == 0 ? 2.0 : 1.0});
      const City city = prepare_city(input);
      for (Direction sun :
           {Direction{17.3, 25}, Direction{90, 8}, Direction{211, 3}, Direction{300, 60}, Direction{0, 90}})
        expect_shadows(compute_shadows(context(), input, sun), city, testing::cast_rays(city, sun),
                       std::to_string(rows) + "x" + std::to_string(cols) + (plants ? " plants" : "") +
                           " az " + std::to_string(sun.azimuth_deg));
    }
  }
}

TEST_P(Compute, MissingPixels) {
  CityInput input = random_city(37, 41, 99);
  for (size_t p = 0; p < input.dsm.pixels().size(); p += 7)
    input.dsm.pixels()[p] = p % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : -9999.0f;
  input.dsm.nodata = -9999.0f;
  const City city = prepare_city(input);
  const Direction sun{130, 20};
  expect_shadows(compute_shadows(context(), input, sun), city, testing::cast_rays(city, sun), "holes");
  SkyOptions options;
  options.patches = SkyPatches::p145;
  const SkyDivision sky = sky_division(options.patches, options.edges);
  const auto expected =
      reference::sky_view<float>(city, sky, reference::sky_states<float>(city, sky, options));
  const SkyViewFactors ours = compute_sky_view_factors(context(), input, options);
  for (size_t g = 0; g < kSkyViewGrids; ++g)
    expect_same(ours.grids[g], expected[g], city, std::string(kSkyViewNames[g]));
}

TEST_P(Compute, WallsAndTheirShadows) {
  for (double px : {1.0, 2.0, 4.0}) {
    const CityInput input = random_city(64, 57, 5, {.pixel_size_m = px});
    const City city = prepare_city(input);
    WallOptions limit;
    limit.minimum_height_m = 2;
    const Walls ours = compute_walls(context(), input, limit);
    const auto heights = reference::wall_height<float>(city, 2);
    const auto aspects = reference::wall_aspect<float>(city, heights);
    expect_same(ours.height, heights, city, "wall height");
    for (size_t p = 0; p < aspects.size(); ++p) ASSERT_NEAR(ours.aspect.pixels()[p], aspects[p], 3e-4) << p;
    WallOptions published = limit;
    published.ties = WallTies::first;
    published.filter = WallFilter::pixels;
    const auto first = reference::wall_aspect<float>(city, heights, published);
    const Walls theirs = compute_walls(context(), input, published);
    for (size_t p = 0; p < first.size(); ++p) ASSERT_NEAR(theirs.aspect.pixels()[p], first[p], 3e-4) << p;
    for (double azimuth : {40.0, 100.0, 180.0, 260.0, 340.0}) {
      const Direction sun{azimuth, 30};
      const auto rays = testing::cast_rays(city, sun);
      const auto expected =
          reference::shade_walls<float>(city, rays, heights, values_of(ours.aspect), azimuth);
      const ShadowsWithWalls both = compute_wall_shadows(context(), input, ours, sun);
      expect_same(both.walls.sun, expected.sun, city, "wall sun");
      expect_same(both.walls.shadow, expected.shadow, city, "wall shadow");
      expect_shadows(both.shadows, city, rays, "beside walls");
    }
  }
}

TEST_P(Compute, SkyViewFactorsOfTheTinyCity) {
  for (bool plants : {true, false}) {
    CityInput input = tiny_city(1.0);
    if (!plants) input.cdsm = input.tdsm = Raster();
    const City city = prepare_city(input);
    for (ZenithRule zenith : {ZenithRule::umep, ZenithRule::open})
      for (SkyPatches patches : {SkyPatches::p145, SkyPatches::p153, SkyPatches::p305, SkyPatches::p609}) {
        if (!quick() && patches != SkyPatches::p153) continue;
        SkyOptions options;
        options.patches = patches;
        options.zenith = zenith;
        options.keep_states = true;
        const SkyDivision sky = sky_division(options.patches, options.edges);
        const PackedSky states = reference::sky_states<float>(city, sky, options);
        const SkyViewFactors ours = compute_sky_view_factors(context(), input, options);
        EXPECT_EQ(ours.states.patches, states.patches);
        EXPECT_EQ(ours.states.words, states.words);
        const auto expected = reference::sky_view<float>(city, sky, states);
        for (size_t g = 0; g < kSkyViewGrids; ++g)
          expect_same(ours.grids[g], expected[g], city, std::string(kSkyViewNames[g]));
      }
  }
}

TEST_P(Compute, TiledIsUntiled) {
  const CityInput input = random_city(90, 75, 21);
  SkyOptions options;
  options.patches = SkyPatches::p145;
  options.keep_states = true;
  const SkyViewFactors whole = compute_sky_view_factors(context(), input, options);
  const Direction sun{160, 11};
  const Shadows shadows = compute_shadows(context(), input, sun);
  WallOptions limit;
  limit.minimum_height_m = 1;
  const Walls walls = compute_walls(context(), input, limit);
  for (int64_t side : {32, 50}) {
    for (int workers : {1, 3}) {
      if (!quick() && (workers > 1 || side != 50)) continue;
      TileOptions tiles;
      tiles.side = side;
      tiles.workers = workers;
      TileReport report;
      const SkyViewFactors tiled = compute_sky_view_factors(context(), input, options, tiles, &report);
      EXPECT_EQ(report.tiles, (90 + side - 1) / side * ((75 + side - 1) / side));
      EXPECT_LE(report.queue_depth_peak, workers);
      EXPECT_EQ(static_cast<int64_t>(report.tile_seconds.size()), report.tiles);
      EXPECT_EQ(tiled.states.words, whole.states.words);
      for (size_t g = 0; g < kSkyViewGrids; ++g)
        EXPECT_EQ(values_of(tiled.grids[g]), values_of(whole.grids[g])) << g;
      const Shadows tiled_shadows = compute_shadows(context(), input, sun, {}, tiles);
      EXPECT_EQ(values_of(tiled_shadows.buildings), values_of(shadows.buildings));
      EXPECT_EQ(values_of(tiled_shadows.vegetation), values_of(shadows.vegetation));
      EXPECT_EQ(values_of(tiled_shadows.vegetation_before_buildings),
                values_of(shadows.vegetation_before_buildings));
      const Walls tiled_walls = compute_walls(context(), input, limit, tiles);
      EXPECT_EQ(values_of(tiled_walls.height), values_of(walls.height));
      EXPECT_EQ(values_of(tiled_walls.aspect), values_of(walls.aspect));
    }
  }
}

/// Values by their bits, so that NaN equals NaN.
std::vector<uint32_t> bits_of(const Raster& grid) {
  std::vector<uint32_t> bits;
  for (float v : grid.pixels()) bits.push_back(std::bit_cast<uint32_t>(v));
  return bits;
}

TEST_P(Compute, TiledIsUntiledWithHolesAndAtAnyPixelSize) {
  if (!quick()) GTEST_SKIP() << "the interpreter takes too long";
  for (double px : {0.5, 2.0}) {
    CityInput input = random_city(100, 83, 31, {.pixel_size_m = px, .missing_share = 0.05});
    TileOptions tiles;
    tiles.side = 32;
    WallOptions limit;
    limit.minimum_height_m = 1;
    const Walls walls = compute_walls(context(), input, limit),
                tiled_walls = compute_walls(context(), input, limit, tiles);
    EXPECT_EQ(bits_of(tiled_walls.height), bits_of(walls.height)) << px;
    EXPECT_EQ(bits_of(tiled_walls.aspect), bits_of(walls.aspect)) << px;
    const Direction sun{250, 14};
    const ShadowsWithWalls shadows = compute_wall_shadows(context(), input, walls, sun),
                           tiled = compute_wall_shadows(context(), input, walls, sun, {}, tiles);
    EXPECT_EQ(bits_of(tiled.shadows.buildings), bits_of(shadows.shadows.buildings)) << px;
    EXPECT_EQ(bits_of(tiled.shadows.vegetation), bits_of(shadows.shadows.vegetation)) << px;
    EXPECT_EQ(bits_of(tiled.walls.sun), bits_of(shadows.walls.sun)) << px;
    EXPECT_EQ(bits_of(tiled.walls.shadow), bits_of(shadows.walls.shadow)) << px;
    SkyOptions options;
    options.patches = SkyPatches::p145;
    const SkyViewFactors sky = compute_sky_view_factors(context(), input, options),
                         tiled_sky = compute_sky_view_factors(context(), input, options, tiles);
    for (size_t g = 0; g < kSkyViewGrids; ++g)
      EXPECT_EQ(bits_of(tiled_sky.grids[g]), bits_of(sky.grids[g])) << px << " " << kSkyViewNames[g];
  }
}

TEST_P(Compute, LongestReachIsTheSameWithTiles) {
  const CityInput input = random_city(60, 80, 4);
  const City city = prepare_city(input);
  RayOptions rays;
  rays.max_reach_m = 9;
  const Direction sun{140, 4};
  RayBounds bounds{city.rows, city.cols, 1.0, city.relief_m(), rays.max_reach_m};
  const auto expected = reference::cast<float>(city, ray_steps(sun, bounds), false);
  TileOptions tiles;
  expect_shadows(compute_shadows(context(), input, sun, rays), city, expected, "whole");
  tiles.side = 32;
  expect_shadows(compute_shadows(context(), input, sun, rays, tiles), city, expected, "tiled");
}

TEST_P(Compute, ResumesFinishedTiles) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("lockstep-tiles-" + std::string(GetParam()) + "-" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  const CityInput input = random_city(64, 64, 8);
  SkyOptions options;
  options.patches = SkyPatches::p145;
  const SkyViewFactors whole = compute_sky_view_factors(context(), input, options);
  TileOptions tiles;
  tiles.side = 32;
  tiles.resume_folder = folder;
  // A run that is cut off after its second tile.
  int seen = 0;
  EXPECT_THROW(stream_sky_view_factors(context(), input, options, tiles,
                                       [&](const SkyTile&) {
                                         if (++seen == 2) throw std::runtime_error("cut off");
                                       }),
               std::runtime_error);
  TileReport report;
  const SkyViewFactors again = compute_sky_view_factors(context(), input, options, tiles, &report);
  EXPECT_EQ(report.resumed, 2);
  EXPECT_EQ(report.tile_seconds.size(), 2u);
  for (size_t g = 0; g < kSkyViewGrids; ++g) EXPECT_EQ(values_of(again.grids[g]), values_of(whole.grids[g]));
  // A damaged tile is computed again; other inputs take nothing over.
  std::filesystem::resize_file(folder / "0_32.tile", 100);
  {
    std::fstream file(folder / "32_32.tile", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1000);
    file.put('\x55');
  }
  const SkyViewFactors mended = compute_sky_view_factors(context(), input, options, tiles, &report);
  EXPECT_EQ(report.resumed, 2);
  for (size_t g = 0; g < kSkyViewGrids; ++g) EXPECT_EQ(values_of(mended.grids[g]), values_of(whole.grids[g]));
  options.zenith = ZenithRule::open;
  compute_sky_view_factors(context(), input, options, tiles, &report);
  EXPECT_EQ(report.resumed, 0);
  std::filesystem::remove_all(folder);
}

TEST_P(Compute, ProgressEndsAtTheTotal) {
  const CityInput input = random_city(40, 40, 2);
  TileOptions tiles;
  tiles.side = 32;
  int64_t last = 0, all = 0;
  tiles.on_progress = [&](int64_t done, int64_t total) {
    EXPECT_LE(done, total);
    last = done;
    all = total;
  };
  SkyOptions options;
  options.patches = SkyPatches::p145;
  compute_sky_view_factors(context(), input, options, tiles);
  EXPECT_GT(all, 0);
  EXPECT_EQ(last, all);
}

TEST_P(Compute, RefusesBadInput) {
  const CityInput input = random_city(10, 10, 1);
  EXPECT_THROW(compute_shadows(context(), input, {180, 0}), InputError);
  EXPECT_THROW(compute_shadows(context(), input, {180, -3}), InputError);
  EXPECT_THROW(compute_shadows(context(), CityInput{}, {180, 30}), InputError);
  WallOptions none;
  none.minimum_height_m = 0;
  EXPECT_THROW(compute_walls(context(), input, none), InputError);
  EXPECT_THROW(compute_wall_shadows(context(), input, {Raster(3, 3), Raster(3, 3)}, {180, 30}), InputError);
  RayOptions rays;
  for (double reach : {0.0, -1.0, std::nan("")}) {
    rays.max_reach_m = reach;
    EXPECT_THROW(compute_shadows(context(), input, {180, 30}, rays), InputError);
  }
  CityInput fine = input;
  fine.pixel_size_m = 0.01;
  EXPECT_THROW(compute_walls(context(), fine), InputError);
  TileOptions tiles;
  tiles.side = -5;
  EXPECT_THROW(compute_shadows(context(), input, {180, 30}, {}, tiles), InputError);
}

INSTANTIATE_TEST_SUITE_P(Devices, Compute, ::testing::Values("cpu", "interp"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace lockstep::urban
