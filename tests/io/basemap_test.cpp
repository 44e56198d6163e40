// Basemaps: the part of a picture that a grid covers, by colours that name their cell.
#include "io/rasters/basemap.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/refusal.hpp"
#include "core/temporary_folder.hpp"

namespace lockstep::io {
namespace {

/// A world file gives the size of cells and the centre of the first one.
std::string world_file(double cell, double west, double north, double turn = 0) {
  return std::to_string(cell) + "\n" + std::to_string(turn) + "\n" + std::to_string(turn) + "\n" +
         std::to_string(-cell) + "\n" + std::to_string(west + cell / 2) + "\n" +
         std::to_string(north - cell / 2) + "\n";
}

RasterGrid grid_of(int64_t rows, int64_t cols, double west, double north) {
  RasterGrid grid;
  grid.rows = rows;
  grid.cols = cols;
  grid.has_transform = true;
  grid.transform = {west, 1, 0, north, 0, -1};
  return grid;
}

class Basemap : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = gdal_unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }
  /// Red is the row and green the column of a cell.
  void write(int height, int width, double cell, int channels = 3) {
    Image image(width, height, channels, 255);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        image.at(x, y)[0] = static_cast<uint8_t>(y);
        if (channels > 1) image.at(x, y)[1] = static_cast<uint8_t>(x);
      }
    write_png(folder / "map.png", image);
    test::write_text(folder / "map.pgw", world_file(cell, 100, 200));
  }
  Image read(const RasterGrid& grid) { return read_basemap(folder / "map.png", grid, "dsm.tif"); }
  std::string refusal(const RasterGrid& grid) {
    return test::refusal([&] { read(grid); });
  }
  test::TemporaryFolder folder;
};

TEST_F(Basemap, IsCutToTheGrid) {
  write(30, 40, 1);
  const Image image = read(grid_of(4, 5, 103, 198));
  ASSERT_EQ(image.width, 5);
  ASSERT_EQ(image.height, 4);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 5; ++x) {
      EXPECT_EQ(image.pixels[size_t(3 * (5 * y + x))], y + 2);
      EXPECT_EQ(image.pixels[size_t(3 * (5 * y + x) + 1)], x + 3);
    }
}

TEST_F(Basemap, KeepsFinerCellsAndRepeatsCoarserOnes) {
  write(30, 40, 0.5);
  Image image = read(grid_of(2, 3, 101, 199));
  ASSERT_EQ(image.width, 6);
  ASSERT_EQ(image.height, 4);
  EXPECT_EQ(image.at(5, 3)[0], 5);
  EXPECT_EQ(image.at(5, 3)[1], 7);
  write(30, 40, 4);
  image = read(grid_of(8, 8, 104, 192));
  ASSERT_EQ(image.width, 2);
  EXPECT_EQ(image.at(1, 0)[1], 2);
  EXPECT_EQ(image.at(1, 1)[0], 3);
}

TEST_F(Basemap, IsWhiteOutside) {
  write(3, 3, 1);
  Image image = read(grid_of(5, 5, 99, 201));
  ASSERT_EQ(image.width, 5);
  for (int k = 0; k < 5; ++k) {
    EXPECT_EQ(image.at(0, k)[0], 255);
    EXPECT_EQ(image.at(k, 4)[0], 255);
  }
  EXPECT_EQ(image.at(3, 2)[0], 1);
  EXPECT_EQ(image.at(3, 2)[1], 2);
}

TEST_F(Basemap, AveragesWhatIsFinerThanItsLongestSide) {
  Image stripes(8192, 2, 3);
  for (int x = 0; x < stripes.width; ++x)
    for (int y = 0; y < 2; ++y) stripes.at(x, y)[0] = static_cast<uint8_t>(x % 4 < 2 ? 20 : 120);
  write_png(folder / "map.png", stripes);
  test::write_text(folder / "map.pgw", world_file(1, 100, 200));
  Image image = read(grid_of(2, 8192, 100, 200));
  EXPECT_EQ(image.width, 2048);
  for (int x = 0; x < image.width; ++x) EXPECT_EQ(image.at(x, 0)[0], 70);
}

TEST_F(Basemap, TransparentPartsAreWhite) {
  Image image(3, 1, 4);
  const uint8_t alphas[] = {0, 51, 255};
  for (int x = 0; x < 3; ++x) image.at(x, 0)[0] = 155, image.at(x, 0)[3] = alphas[x];
  write_png(folder / "map.png", image);
  test::write_text(folder / "map.pgw", world_file(1, 100, 200));
  Image map = read(grid_of(1, 3, 100, 200));
  EXPECT_EQ(map.at(0, 0)[0], 255);
  EXPECT_EQ(map.at(1, 0)[0], 235) << "a fifth of 155, the rest white";
  EXPECT_EQ(map.at(2, 0)[0], 155);
}

TEST_F(Basemap, IsRefusedWithItsReason) {
  const RasterGrid grid = grid_of(4, 5, 103, 198);
  const auto expect = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  write(30, 40, 1);
  expect(refusal(grid_of(4, 5, 140, 198)), "it covers x from 100 to 140");
  test::write_text(folder / "map.pgw", world_file(1, 100, 200, 0.1));
  expect(refusal(grid), "rotated or mirrored");
  std::filesystem::remove(folder / "map.pgw");
  expect(refusal(grid), "no georeference");
  write(30, 40, 1, 1);
  expect(refusal(grid), "1 bands");
  test::write_text(folder / "map.png", "no picture");
  EXPECT_NE(refusal(grid), "");
}

}  // namespace
}  // namespace lockstep::io
