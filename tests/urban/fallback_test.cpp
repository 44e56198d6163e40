// Stages of the urban model whose device fails: the same results from the CPU, one line, one count. And the
// stages on every GPU of this machine, software adapters among them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "device/devices.hpp"
#include "lockstep/context.hpp"
#include "lockstep/error.hpp"
#include "rasters.hpp"
#include "urban/scenes.hpp"

namespace lockstep::urban {
namespace {

std::vector<std::string> gpus() {
  std::vector<std::string> found;
  for (const DeviceStatus& status : Device::list())
    if (status.available && (status.info.kind == DeviceKind::cuda || status.info.kind == DeviceKind::webgpu))
      found.push_back(status.info.name);
  return found;
}

/// All results of the three stages, as one list; each stage on its own context.
std::vector<float> everything(Context& wall_context, Context& shadow_context, Context& sky_context,
                              const CityInput& input, const TileOptions& tiles) {
  SkyOptions sky;
  sky.patches = SkyPatches::p145;
  WallOptions limit;
  limit.minimum_height_m = 2;
  const Walls walls = compute_walls(wall_context, input, limit, tiles);
  const ShadowsWithWalls shadows = compute_wall_shadows(shadow_context, input, walls, {200, 30}, {}, tiles);
  const SkyViewFactors factors = compute_sky_view_factors(sky_context, input, sky, tiles);
  std::vector<float> all;
  const auto append = [&](const Raster& grid) {
    all.insert(all.end(), grid.pixels().begin(), grid.pixels().end());
  };
  for (const Raster* grid : {&walls.height, &walls.aspect, &shadows.shadows.buildings,
                             &shadows.shadows.vegetation, &shadows.walls.sun, &shadows.walls.shadow})
    append(*grid);
  for (const Raster& grid : factors.grids) append(grid);
  return all;
}

std::vector<float> everything(Context& context, const CityInput& input, const TileOptions& tiles) {
  return everything(context, context, context, input, tiles);
}

/// No point is further away than WebGPU's arithmetic.
void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  int apart = 0;
  for (size_t k = 0; k < got.size(); ++k) apart += !(std::abs(got[k] - expected[k]) <= 3e-4f);
  EXPECT_EQ(apart, 0);
}

/// Bit for bit, missing pixels too.
void expect_same(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0);
}

/// The bits of the CPU on CUDA.
void expect_close(const std::string& device, const std::vector<float>& got,
                  const std::vector<float>& expected) {
  if (device.starts_with("cuda")) return expect_same(got, expected);
  expect_near(got, expected);
}

class UrbanOnGpu : public ::testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { set_fault(""); }
  std::vector<float> expected(const CityInput& input) {
    Context cpu(ContextOptions{.device = "cpu"});
    return everything(cpu, input, {});
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(UrbanOnGpu);

TEST_P(UrbanOnGpu, AgreesWithTheCpu) {
  const CityInput input = random_city(75, 90, 3);
  Context context(ContextOptions{.device = GetParam()});
  const std::vector<float> whole = everything(context, input, {});
  expect_close(GetParam(), whole, expected(input));
  TileOptions tiles;
  tiles.side = 32;
  tiles.workers = 3;
  expect_same(everything(context, input, tiles), whole);
  EXPECT_TRUE(context.fallbacks().empty());
}

TEST_P(UrbanOnGpu, EveryStageFallsBackFromEveryFault) {
  const CityInput input = random_city(50, 60, 4);
  for (const std::string stage : {"urban.walls", "urban.shadow", "urban.svf"}) {
    // The stage on the CPU, the others on the device: what a fault of that stage has to give.
    Context cpu(ContextOptions{.device = "cpu"}), gpu(ContextOptions{.device = GetParam()});
    const auto on = [&](const char* name) -> Context& { return stage == name ? cpu : gpu; };
    const std::vector<float> right =
        everything(on("urban.walls"), on("urban.shadow"), on("urban.svf"), input, {});
    for (const std::string fault : {"allocation", "compile", "launch", "device_lost"}) {
      SCOPED_TRACE(stage + ":" + fault);
      set_fault(stage + ":" + fault);
      std::vector<std::string> lines;
      ContextOptions options{.device = GetParam()};
      options.on_fallback = [&](const std::string& line) { lines.push_back(line); };
      Context context(options);
      expect_same(everything(context, input, {}), right);
      const auto counts = context.fallbacks();
      ASSERT_EQ(lines.size(), 1u);
      EXPECT_EQ(lines[0].find("[GPU] " + stage + " failed: "), 0u) << lines[0];
      EXPECT_NE(lines[0].find(". CPU fallback."), std::string::npos) << lines[0];
      ASSERT_EQ(counts.count(stage), 1u);
      EXPECT_EQ(counts.at(stage), 1);
    }
  }
}

TEST_P(UrbanOnGpu, WithoutFallbackTheFaultIsThrown) {
  const CityInput input = random_city(20, 20, 4);
  for (const std::string stage : {"urban.walls", "urban.shadow", "urban.svf"}) {
    set_fault(stage + ":launch");
    ContextOptions options{.device = GetParam()};
    options.fallback = false;
    Context context(options);
    EXPECT_THROW(everything(context, input, {}), DeviceError) << stage;
  }
}

TEST_P(UrbanOnGpu, OneTileOfManyFallsBack) {
  const CityInput input = random_city(64, 64, 9);
  TileOptions tiles;
  tiles.side = 32;
  tiles.workers = 1;
  SkyOptions sky;
  sky.patches = SkyPatches::p145;
  set_fault("urban.svf:launch:9");
  ContextOptions options{.device = GetParam()};
  int lines = 0;
  options.on_fallback = [&](const std::string&) { ++lines; };
  Context context(options);
  TileReport report;
  const SkyViewFactors mixed = compute_sky_view_factors(context, input, sky, tiles, &report);
  EXPECT_EQ(lines, 1);
  EXPECT_EQ(report.tiles, 4);
  Context cpu(ContextOptions{.device = "cpu"});
  const SkyViewFactors right = compute_sky_view_factors(cpu, input, sky);
  for (size_t g = 0; g < kSkyViewGrids; ++g)
    expect_close(GetParam(), values_of(mixed.grids[g]), values_of(right.grids[g]));
}

INSTANTIATE_TEST_SUITE_P(Devices, UrbanOnGpu, ::testing::ValuesIn(gpus()),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
}  // namespace lockstep::urban
