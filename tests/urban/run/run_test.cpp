// Whole runs from files to files, without the program.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "io/rasters/raster.hpp"
#include "io/text/file.hpp"
#include "lockstep/context.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/report.hpp"
#include "urban/pictures/looks.hpp"
#include "urban/rasters.hpp"
#include "urban/run/grid_statistics.hpp"
#include "urban/run/opening.hpp"
#include "urban/scenes.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> members(const nlohmann::ordered_json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

class Run : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "lockstep-run-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    SampleRunOptions sample;
    sample.output = {folder_ / "city", GridFormat::npy, false};
    sample.rows = 60;
    sample.cols = 70;
    run(sample);
    files_.dsm = folder_ / "city/dsm.npy";
    files_.cdsm = folder_ / "city/cdsm.npy";
    files_.pixel_size_m = 1;
  }
  void TearDown() override { fs::remove_all(folder_); }
  OutputOptions output(bool pictures = false) const { return {folder_ / "out", GridFormat::npy, pictures}; }
  std::vector<float> read(const OutputGrid& grid) const {
    const auto reader = io::RasterReader::open(grid.file);
    std::vector<float> values(static_cast<size_t>(reader->grid().rows * reader->grid().cols));
    reader->read(0, 0, reader->grid().rows, reader->grid().cols, values.data());
    return values;
  }
  CityInput city() const {
    CityInput input;
    for (auto [file, grid] : {std::pair{files_.dsm, &input.dsm}, {files_.cdsm, &input.cdsm}}) {
      *grid = Raster(60, 70);
      io::RasterReader::open(file)->read(0, 0, 60, 70, grid->pixels().data());
    }
    return input;
  }

  fs::path folder_;
  CityFiles files_;
  Context context_{ContextOptions{.device = "cpu,interp"}};
};

// A projection that stretches lengths: pictures have the scale of the ground, whose pixels are shorter than those of the map.
TEST_F(Run, ScaleBarsMeasureTheGround) {
  if (!io::gdal_unavailable_reason().empty()) GTEST_SKIP() << io::gdal_unavailable_reason();
  SampleRunOptions sample;
  sample.output = {folder_ / "mercator", GridFormat::tif, false};
  sample.rows = sample.cols = 60;
  sample.epsg = 3857;
  run(sample);
  WallRunOptions options;
  options.city.dsm = folder_ / "mercator/dsm.tif";
  options.output = output(true);
  const WallRunResult result = run(context_, options);
  EXPECT_NEAR(result.projection_scale, 1.58, 0.01) << "at a latitude of 50.8 degrees";
  const LoadedCity loaded = read_city(options.city);
  const Outputs again({folder_ / "again", GridFormat::npy, true}, loaded.grid, {});
  const std::vector<float> relief = relief_of(loaded.input.dsm, loaded.grid, options.output);
  const auto picture = [&](double pixel_m) {
    return io::read_text_file(again.draw(wall_looks()[0], read(result.outputs[0]), relief, pixel_m));
  };
  const std::string drawn = io::read_text_file(result.outputs[0].picture);
  EXPECT_TRUE(drawn == picture(1 / result.projection_scale));
  EXPECT_FALSE(drawn == picture(1));
}

TEST_F(Run, Shadows) {
  ShadowRunOptions options;
  options.city = files_;
  options.output = output(true);
  options.azimuth_deg = 200, options.altitude_deg = 30;
  options.find_walls = true;
  const ShadowRunResult result = run(context_, options);
  const auto document = nlohmann::ordered_json::parse(to_json(result));
  EXPECT_EQ(members(document),
            (std::vector<std::string>{"rows", "cols", "pixel_size", "sun", "tiles", "outputs"}));
  EXPECT_EQ(members(document["sun"]),
            (std::vector<std::string>{"azimuth", "grid_azimuth", "altitude", "night"}));
  const CityInput input = city();
  const ShadowsWithWalls expected =
      compute_wall_shadows(context_, input, compute_walls(context_, input), {200, 30});
  ASSERT_EQ(result.outputs.size(), 5u);
  EXPECT_EQ(read(result.outputs[0]), values_of(expected.shadows.buildings));
  EXPECT_EQ(read(result.outputs[1]), values_of(expected.shadows.vegetation));
  EXPECT_EQ(read(result.outputs[3]), values_of(expected.walls.sun));
  EXPECT_EQ(read(result.outputs[4]), values_of(expected.walls.shadow));
  for (const OutputGrid& grid : result.outputs) EXPECT_TRUE(fs::exists(grid.picture)) << grid.name;
  std::vector<std::string> host;
  for (const StageRecord& stage : result.host_stages) host.push_back(stage.stage);
  EXPECT_EQ(host, (std::vector<std::string>{"read", "write"}));
}

TEST_F(Run, WallsAndSky) {
  const CityInput input = city();
  WallRunOptions walls;
  walls.city = files_;
  walls.output = output();
  const WallRunResult found = run(context_, walls);
  EXPECT_EQ(members(nlohmann::ordered_json::parse(to_json(found))),
            (std::vector<std::string>{"rows", "cols", "pixel_size", "tiles", "outputs"}));
  EXPECT_EQ(read(found.outputs[1]), values_of(compute_walls(context_, input).aspect));

  SkyRunOptions sky;
  sky.city = files_;
  sky.output = output();
  sky.sky.patches = SkyPatches::p145;
  sky.sky.keep_states = true;
  sky.tiles.side = 32;
  const SkyRunResult result = run(context_, sky);
  EXPECT_EQ(members(nlohmann::ordered_json::parse(to_json(result))),
            (std::vector<std::string>{"rows", "cols", "pixel_size", "patches", "zenith", "states", "tiles",
                                      "outputs"}));
  EXPECT_EQ(result.tiles.tiles, 6);
  const SkyViewFactors expected = compute_sky_view_factors(context_, input, sky.sky);
  for (size_t g = 0; g < kSkyViewGrids; ++g)
    EXPECT_EQ(read(result.outputs[g]), values_of(expected.grids[g])) << g;
  EXPECT_TRUE(fs::exists(result.states));
  EXPECT_FALSE(fs::exists(folder_ / "out/.tiles"));
  EXPECT_FALSE(fs::exists(folder_ / "out/.lockstep.lock"));
}

TEST_F(Run, ANightOfMissingPixelsAndWalls) {
  ShadowRunOptions options;
  options.city = files_;
  options.output = output();
  options.time = "2015-12-21T22:00Z";
  options.latitude_deg = 57.7;
  options.longitude_deg = 11.97;
  options.find_walls = true;
  const ShadowRunResult result = run(context_, options);
  EXPECT_LT(result.sun.altitude_deg, 0);
  EXPECT_TRUE(nlohmann::json::parse(to_json(result))["sun"]["night"]);
  for (const float v : read(result.outputs[0])) EXPECT_EQ(v, 0);
  const std::vector<float> dark = read(result.outputs[4]),
                           walls = values_of(compute_walls(context_, city()).height);
  EXPECT_EQ(dark, walls);
  EXPECT_GT(*std::max_element(walls.begin(), walls.end()), 3);
}

// The statistics reported for a grid are those of its file, for any tiling.
TEST_F(Run, StatisticsAreThoseOfTheFile) {
  SkyRunOptions options;
  options.city = files_;
  options.output = output();
  options.sky.patches = SkyPatches::p145;
  std::vector<std::vector<double>> means;
  for (const int64_t side : {0, 32}) {
    options.tiles.side = side;
    means.emplace_back();
    for (const OutputGrid& grid : run(context_, options).outputs) {
      double sum = 0;
      const std::vector<float> values = read(grid);
      for (const float v : values) sum += static_cast<double>(v);
      EXPECT_EQ(grid.minimum, *std::min_element(values.begin(), values.end())) << grid.name;
      EXPECT_EQ(grid.maximum, *std::max_element(values.begin(), values.end())) << grid.name;
      EXPECT_NEAR(grid.mean, sum / static_cast<double>(values.size()), 1e-12) << grid.name;
      EXPECT_EQ(grid.missing, 0);
      means.back().push_back(grid.mean);
    }
  }
  EXPECT_EQ(means[0], means[1]);
}

TEST(GridStatistics, SumsAreExactInAnyOrder) {
  std::vector<float> values = {3.0e38f, 1.5f, -3.0e38f,  1.0e-45f,    -0.0f,
                               2.25f,   NAN,  -1.0e-45f, 16777216.0f, 1.0f};
  const auto mean_of = [](const std::vector<float>& list, size_t cut) {
    GridStatistics statistics;
    statistics.take(std::span(list).first(cut));
    statistics.take(std::span(list).subspan(cut));
    OutputGrid grid;
    statistics.fill(grid);
    EXPECT_EQ(grid.missing, 1);
    EXPECT_EQ(grid.minimum, -3.0e38f);
    return grid.mean;
  };
  EXPECT_EQ(mean_of(values, 0), (1.5 + 2.25 + 16777216.0 + 1.0) / 9);
  for (size_t turn = 1; turn < values.size(); ++turn) {
    std::rotate(values.begin(), values.begin() + 1, values.end());
    EXPECT_EQ(mean_of(values, turn), (1.5 + 2.25 + 16777216.0 + 1.0) / 9) << turn;
  }
  OutputGrid none;
  GridStatistics().fill(none);
  EXPECT_TRUE(std::isnan(none.mean) && std::isnan(none.minimum));
}

// A device that opens during reading gives the same files. If both fail, the inputs' error is reported.
TEST_F(Run, OpensTheDeviceMeanwhile) {
  ShadowRunOptions options;
  options.city = files_;
  options.output = output();
  options.azimuth_deg = 200, options.altitude_deg = 30;
  const std::vector<float> expected = read(run(context_, options).outputs[0]);
  std::thread::id opened;
  const auto open = [&]() -> Context& {
    opened = std::this_thread::get_id();
    return context_;
  };
  EXPECT_EQ(read(run(open, options).outputs[0]), expected);
  EXPECT_NE(opened, std::this_thread::get_id());
  const auto fail = []() -> Context& { throw UnsupportedError("no device", "test", "one"); };
  EXPECT_THROW(run(fail, options), UnsupportedError);
  options.city.dsm = folder_ / "none.npy";
  EXPECT_THROW(run(fail, options), InputError);
}

TEST_F(Run, RefusesWhatContradictsItself) {
  ShadowRunOptions options;
  options.city = files_;
  options.output = output();
  EXPECT_THROW(run(context_, options), InputError) << "no sun";
  options.azimuth_deg = 180, options.altitude_deg = 0;
  EXPECT_THROW(run(context_, options), InputError) << "at the horizon";
  options.azimuth_deg = 180, options.altitude_deg = 20;
  options.time = "2015-06-21T12:00Z";
  EXPECT_THROW(run(context_, options), InputError) << "two suns";
  options.time.clear();
  options.wall_height = files_.dsm;
  EXPECT_THROW(run(context_, options), InputError) << "half of the walls";
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

}  // namespace
}  // namespace lockstep::urban
