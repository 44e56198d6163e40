// A city that stays in its files gives the bits of one that is held.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/files/atomic_file.hpp"
#include "io/arrays/npy.hpp"
#include "io/rasters/raster.hpp"
#include "lockstep/context.hpp"
#include "lockstep/error.hpp"
#include "rasters.hpp"
#include "urban/city/random_city.hpp"
#include "urban/run/files/city_files.hpp"
#include "urban/sky/sky.hpp"
#include "urban/sun/shadows.hpp"
#include "urban/tiles/run_tiles.hpp"
#include "urban/walls/walls.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRows = 150, kCols = 110;
constexpr uint64_t kBand = 7 * 16 * kCols;  // some rows

class CityWindowsTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (suffix() != ".npy" && !io::gdal_unavailable_reason().empty())
      GTEST_SKIP() << io::gdal_unavailable_reason();
    std::string name = (fs::temp_directory_path() / "lockstep-windows-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    input_ = random_city(kRows, kCols, 11);
    input_.dsm.at(3, 4) = input_.dsm.at(149, 100) = std::numeric_limits<float>::quiet_NaN();
    input_.tdsm = {};
    files_.pixel_size_m = input_.pixel_size_m;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  std::string suffix() const { return GetParam(); }
  void write_text(const fs::path& path, const Raster& raster) const;
  fs::path write(const std::string& name, const Raster& raster) const {
    io::RasterGrid grid;
    grid.rows = kRows;
    grid.cols = kCols;
    grid.place(input_.pixel_size_m);
    const fs::path path = folder_ / (name + suffix());
    if (suffix() == ".asc") {
      write_text(path, raster);
      return path;
    }
    io::write_raster(path, grid, raster.values);
    return path;
  }
  void write_all() {
    files_.dsm = write("dsm", input_.dsm);
    if (!input_.cdsm.empty()) files_.cdsm = write("cdsm", input_.cdsm);
    if (!input_.tdsm.empty()) files_.tdsm = write("tdsm", input_.tdsm);
    files_.canopy_heights = input_.canopy_heights;
    files_.dsm_heights = input_.dsm_heights;
    files_.trunk_ratio = input_.trunk_ratio;
  }
  City whole() const {
    LoadedCity loaded = read_city(files_);
    return take_city(loaded);
  }
  City by_windows() const {
    LoadedCity loaded = read_city_by_windows(files_, kBand);
    return take_city(loaded);
  }
  void expect_same() const;

  fs::path folder_;
  CityInput input_;
  CityFiles files_;
  Context context_{ContextOptions{.device = "cpu,interp"}};
};

void CityWindowsTest::write_text(const fs::path& path, const Raster& raster) const {
  std::string text =
      fmt::format("ncols {}\nnrows {}\nxllcorner 0\nyllcorner 0\ncellsize {}\nNODATA_value -9998\n", kCols,
                  kRows, input_.pixel_size_m);
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t col = 0; col < kCols; ++col) {
      const float v = raster.pixels()[size_t(row * kCols + col)];
      text += fmt::format("{:.9g}{}", std::isnan(v) ? -9998.0f : v, col + 1 < kCols ? ' ' : '\n');
    }
  write_file(path, text);
}

std::vector<float> cut(const City& city, const Array& grid, int64_t row, int64_t col, int64_t rows,
                       int64_t cols) {
  std::vector<float> out;
  for (int64_t r = row; r < row + rows; ++r) {
    const float* const from = grid.as<float>().data() + r * city.cols + col;
    out.insert(out.end(), from, from + cols);
  }
  return out;
}

void CityWindowsTest::expect_same() const {
  const City held = whole(), read = by_windows();
  ASSERT_TRUE(read.windows && read.dsm.empty() && !held.windows);
  EXPECT_EQ(read.rows, held.rows);
  EXPECT_EQ(read.cols, held.cols);
  EXPECT_EQ(read.lowest, held.lowest);
  EXPECT_EQ(read.highest, held.highest);
  EXPECT_EQ(read.shift, held.shift);
  EXPECT_EQ(read.missing, held.missing);
  ASSERT_EQ(read.has_vegetation(), held.has_vegetation());
  TileJob job;
  EXPECT_EQ(tile_key(context_, read, job), tile_key(context_, held, job));
  for (const auto& [row, col, rows, cols] : std::vector<std::array<int64_t, 4>>{
           {0, 0, kRows, kCols}, {0, 0, 9, 8}, {13, 20, 101, 77}, {149, 0, 1, kCols}, {90, 109, 3, 1}}) {
    const City part = read.windows->read(row, col, rows, cols);
    EXPECT_EQ(values_of(part.dsm), cut(held, held.dsm, row, col, rows, cols));
    EXPECT_EQ(part.highest, held.highest);
    EXPECT_EQ(part.has_vegetation(), held.has_vegetation());
    if (!held.has_vegetation()) continue;
    EXPECT_EQ(values_of(part.canopy), cut(held, held.canopy, row, col, rows, cols));
    EXPECT_EQ(values_of(part.trunk), cut(held, held.trunk, row, col, rows, cols));
  }
}

TEST_P(CityWindowsTest, GridsAreThoseOfTheWholeCity) {
  write_all();
  ASSERT_TRUE(whole().has_vegetation());
  expect_same();
}

TEST_P(CityWindowsTest, NegativeHeightsRaiseAll) {
  for (float& height : input_.dsm.pixels()) height -= 70.3f;
  write_all();
  ASSERT_GT(whole().shift, 0);
  expect_same();
}

TEST_P(CityWindowsTest, AbsoluteCanopiesAndTrunks) {
  input_.canopy_heights = CanopyHeights::absolute;
  input_.tdsm = input_.cdsm;
  for (size_t p = 0; p < input_.cdsm.pixels().size(); ++p)
    if (input_.cdsm.pixels()[p] > 0) input_.cdsm.pixels()[p] += input_.dsm.pixels()[p];
  write_all();
  expect_same();
}

TEST_P(CityWindowsTest, HeightsAboveGround) {
  input_.dsm_heights = DsmHeights::above_ground;
  Raster ground(kRows, kCols);
  for (size_t p = 0; p < ground.pixels().size(); ++p) ground.pixels()[p] = float(p % 97) * 0.37f;
  ground.at(40, 41) = std::numeric_limits<float>::quiet_NaN();
  write_all();
  files_.dem = write("dem", ground);
  expect_same();
}

/// Roofs begin 2 m above the DEM: heights next to that bound show a shift that is added in another way.
TEST_P(CityWindowsTest, TheGroundIsThatOfTheWholeCity) {
  Raster ground(kRows, kCols);
  for (size_t p = 0; p < ground.pixels().size(); ++p) {
    input_.dsm.pixels()[p] -= 70.3f;
    ground.pixels()[p] = input_.dsm.pixels()[p] - 1.99999f - float(p % 3) * 1e-5f;
  }
  ground.at(40, 41) = std::numeric_limits<float>::quiet_NaN();
  write_all();
  files_.dem = write("dem", ground);
  EXPECT_FALSE(whole().has_ground()) << "a DEM that nobody asks for";
  LoadedCity all = read_city(files_, TileOptions(), GroundUse::counted),
             parts = read_city_by_windows(files_, kBand, GroundUse::counted);
  const City held = take_city(all), read = take_city(parts);
  ASSERT_TRUE(held.has_ground() && read.has_ground() && read.windows && !held.windows);
  const std::vector<uint8_t> mask = ground_mask(held);
  const auto ones = std::ranges::count(mask, 1);
  EXPECT_GT(ones, kRows * kCols / 4);
  EXPECT_LT(ones, kRows * kCols * 3 / 4);
  EXPECT_EQ(mask[40 * kCols + 41], 0);
  EXPECT_EQ(ground_mask(read), mask);
  EXPECT_EQ(ground_mask(read, 13, 20, 101, 77), ground_mask(held, 13, 20, 101, 77));
  EXPECT_EQ(tile_key(context_, read, TileJob()), tile_key(context_, held, TileJob()));
  EXPECT_TRUE(read.windows->read(13, 20, 101, 77).dem.empty()) << "rays do not need it";
}

TEST_P(CityWindowsTest, PlantsThatAreNowhere) {
  for (float& height : input_.cdsm.pixels()) height = 0;
  write_all();
  ASSERT_FALSE(whole().has_vegetation());
  expect_same();
}

/// All grids of a run by tiles of 64 pixels.
using Streaming = std::function<TileReport(const City&, const TileOptions&, const TileSink&)>;
std::vector<Raster> tiled(const City& city, int grids, const TileOptions& options, const Streaming& stream,
                          TileReport* report = nullptr) {
  std::vector<Raster> out(size_t(grids), Raster(kRows, kCols, -1));
  const TileReport done = stream(city, options, [&](const Tile& tile, const TileResult& result) {
    for (size_t k = 0; k < out.size(); ++k) stitch(tile, result.plane(k), out[k]);
  });
  if (report) *report = done;
  return out;
}

void expect_equal(const std::vector<Raster>& got, const std::vector<Raster>& expected) {
  for (size_t k = 0; k < got.size(); ++k) {
    const auto a = got[k].values.raw(), b = expected[k].values.raw();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << k;
  }
}

TEST_P(CityWindowsTest, ShadowsAndViewFactorsHaveTheSameBits) {
  for (float& height : input_.dsm.pixels()) height -= 70.3f;
  write_all();
  const City held = whole(), read = by_windows();
  TileOptions options;
  options.side = 64;
  options.workers = 2;
  const Streaming shadows = [&](const City& city, const TileOptions& tiles, const TileSink& sink) {
    return stream_shadows(context_, city, nullptr, {200, 20}, {}, tiles, sink);
  };
  expect_equal(tiled(read, 3, options, shadows), tiled(held, 3, {}, shadows));
  SkyOptions sky;
  sky.patches = SkyPatches::p145;
  const Streaming views = [&](const City& city, const TileOptions& tiles, const TileSink& sink) {
    return stream_sky(context_, city, sky, tiles, sink);
  };
  const std::vector<Raster> expected = tiled(held, kSkyViewGrids, {}, views);
  // Tiles that a held city left are taken over.
  options.resume_folder = folder_ / "tiles";
  expect_equal(tiled(held, kSkyViewGrids, options, views), expected);
  TileReport report;
  expect_equal(tiled(read, kSkyViewGrids, options, views, &report), expected);
  EXPECT_EQ(report.resumed, 6);
  options.resume_folder.clear();
  expect_equal(tiled(read, kSkyViewGrids, options, views, &report), expected);
  EXPECT_EQ(report.tiles, 6);
  EXPECT_THROW(stream_walls(context_, read, {}, options, [](const Tile&, const TileResult&) {}), InputError);
}

std::string refusal(const CityFiles& files, bool by_windows) {
  try {
    if (by_windows)
      read_city_by_windows(files, kBand);
    else
      read_city(files);
  } catch (const InputError& error) { return error.what(); }
  return "";
}

TEST_P(CityWindowsTest, BadHeightsAreToldAsOfTheWhole) {
  input_.dsm.at(120, 7) = -9999;
  write_all();
  EXPECT_NE(refusal(files_, true).find("-9999 at row 120, column 7"), std::string::npos)
      << refusal(files_, true);
  EXPECT_EQ(refusal(files_, true), refusal(files_, false));
  input_.dsm.at(120, 7) = 8990;
  input_.dsm.at(20, 9) = -100;
  write_all();
  EXPECT_NE(refusal(files_, true), "");
  EXPECT_EQ(refusal(files_, true), refusal(files_, false));
  for (float& height : input_.dsm.pixels()) height = std::numeric_limits<float>::quiet_NaN();
  write_all();
  EXPECT_NE(refusal(files_, true).find("no pixel with a height"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Formats, CityWindowsTest, ::testing::Values(".npy", ".tif", ".asc"),
                         [](const auto& format) { return format.param.substr(1); });

TEST(CityWindowsFiles, ValuesThatMustBeHeldAreRefused) {
  std::string name = (fs::temp_directory_path() / "lockstep-windows-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  CityFiles files;
  files.pixel_size_m = 1;
  files.dsm = fs::path(name) / "dsm.npy";
  io::write_npy(files.dsm, Array::of(std::vector<double>{1, 2, 3, 4}, {2, 2}));
  EXPECT_EQ(refusal(files, false), "");
  EXPECT_NE(refusal(files, true).find("f32 in C order"), std::string::npos) << refusal(files, true);
  EXPECT_NE(refusal(files, true).find("dsm.npy"), std::string::npos);
  fs::remove_all(name);
}

}  // namespace
}  // namespace lockstep::urban
