// Folders of inputs from others: read through their handle, links in them refused.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/files/folder.hpp"
#include "core/temporary_folder.hpp"
#include "io/arrays/npy.hpp"
#include "io/checks.hpp"
#include "io/rasters/raster.hpp"
#include "io/text/file.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;
namespace fs = std::filesystem;

Array grid_of(float value) { return Array::of(std::vector<float>(6, value), {2, 3}); }

void fill(const fs::path& folder, float value) {
  fs::create_directory(folder);
  write_text(folder / "a.txt", std::to_string(int(value)));
  write_npy(folder / "a.npy", grid_of(value));
  write_npz(folder / "a.npz", {{"a", grid_of(value)}});
}
void expect_value(const fs::path& folder, float value) {
  EXPECT_EQ(read_text_file(folder / "a.txt"), std::to_string(int(value)));
  EXPECT_EQ(read_npz(folder / "a.npz").front().second.at<float>(1, 1), value);
  std::vector<float> cells(6);
  RasterReader::open(folder / "a.npy", {.pixel_size = 1})->read(0, 0, 2, 3, cells.data());
  EXPECT_EQ(cells[4], value);
}

TEST(InputFolders, TheFolderStaysTheSame) {
  TemporaryFolder folder;
  fill(folder / "in", 1);
  fill(folder / "other", 2);
  const InputFolder in(folder / "in");
  expect_value(folder / "in", 1);
  fs::rename(folder / "in", folder / "away");
  fs::create_directory_symlink(folder / "other", folder / "in");
  expect_value(folder / "in", 1);
  expect_value(folder / "other", 2);
}

TEST(InputFolders, LinksInItAreRefused) {
  TemporaryFolder folder;
  fill(folder / "in", 1);
  fill(folder / "other", 2);
  for (const char* name : {"a.txt", "a.npy", "a.npz"}) {
    fs::remove(folder / "in" / name);
    fs::create_symlink(folder / "other" / name, folder / "in" / name);
  }
  expect_value(folder / "in", 2);
  const InputFolder in(folder / "in");
  const auto refused = [&](const auto& work) { return has(error_of(work), "links in it are not followed"); };
  EXPECT_TRUE(refused([&] { read_text_file(folder / "in" / "a.txt"); }));
  EXPECT_TRUE(refused([&] { read_npz(folder / "in" / "a.npz"); }));
  EXPECT_TRUE(refused([&] { RasterReader::open(folder / "in" / "a.npy", {.pixel_size = 1}); }));
}

TEST(InputFolders, EndsWithItsObject) {
  TemporaryFolder folder;
  fill(folder / "in", 1);
  fill(folder / "other", 2);
  { const InputFolder in(folder / "in"); }
  fs::rename(folder / "in", folder / "away");
  fs::create_directory_symlink(folder / "other", folder / "in");
  expect_value(folder / "in", 2);
  EXPECT_TRUE(has(error_of([&] { InputFolder(folder / "none"); }), "none"));
}

TEST(InputFolders, GdalReadsThroughTheHandle) {
  if (const std::string reason = gdal_unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
  TemporaryFolder folder;
  for (const char* name : {"in", "other"}) {
    fs::create_directory(folder / name);
    RasterGrid grid;
    grid.rows = 2, grid.cols = 3;
    write_raster(folder / name / "a.tif", grid, grid_of(*name == 'i' ? 1 : 2));
  }
  const InputFolder in(folder / "in");
  fs::rename(folder / "in", folder / "away");
  fs::create_directory_symlink(folder / "other", folder / "in");
  const auto raster = read_raster(folder / "in" / "a.tif", {.pixel_size = 1});
  EXPECT_EQ(raster.values.at<float>(1, 1), 1);
}

}  // namespace
