#include "io/rasters/raster.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <thread>

#include "core/temporary_folder.hpp"
#include "io/arrays/npy.hpp"
#include "io/checks.hpp"
#include "io/rasters/gdal/gdal_api.hpp"
#include "io/test_data.hpp"
#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

RasterGrid sample_grid(int64_t rows, int64_t cols) {
  RasterGrid grid;
  grid.rows = rows;
  grid.cols = cols;
  grid.has_transform = true;
  grid.transform = {674000, 2, 0, 6580000, 0, -2};
  return grid;
}
std::vector<float> sample_values(int64_t count) {
  std::mt19937 random(7);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = static_cast<float>(random() % 10000) / 64.0f;
  values[0] = std::numeric_limits<float>::quiet_NaN();
  return values;
}
Array array_of(std::vector<float> values, int64_t rows, int64_t cols) {
  return Array::of(std::move(values), {rows, cols});
}
std::vector<float> values_of(const GeoRaster& raster) {
  return {raster.values.as<float>().begin(), raster.values.as<float>().end()};
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t k = 0; k < a.size(); ++k) {
    if (!(a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k])))) return false;
  }
  return a.size() == b.size();
}

class GdalRaster : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = gdal_unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }
  TemporaryFolder folder;
};

TEST(Raster, NpyNeedsAPixelSizeAndTwoAxes) {
  TemporaryFolder folder;
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  write_npy(folder / "a.npy", Array::of(values, {2, 3}));
  const GeoRaster plain = read_raster(folder / "a.npy");
  EXPECT_EQ(values_of(plain), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(has(error_of([&] { require_square_metres(plain, "a.npy"); }), "no georeference [a.npy]"));
  const GeoRaster placed = read_raster(folder / "a.npy", {.pixel_size = 0.5});
  EXPECT_NO_THROW(require_square_metres(placed, "a.npy"));
  EXPECT_EQ(placed.pixel_size(), 0.5);
  EXPECT_THROW(read_raster(folder / "a.npy", {.pixel_size = 0.0}), InputError);
  EXPECT_THROW(read_raster(folder / "a.npy", {.pixel_size = std::nan("")}), InputError);
  write_npy(folder / "b.npy", Array::of(values, {6}));
  EXPECT_TRUE(has(error_of([&] { read_raster(folder / "b.npy"); }), "an array of shape (6,)"));
}

TEST(Raster, NpyIsWrittenByWindows) {
  TemporaryFolder folder;
  const auto values = sample_values(5 * 7);
  const auto writer = RasterWriter::create(folder / "a.npy", sample_grid(5, 7));
  for (int64_t row = 0; row < 5; ++row) {
    for (int64_t col = 0; col < 7; col += 4) {
      const int64_t cols = std::min<int64_t>(4, 7 - col);
      writer->write(row, col, 1, cols, &values[static_cast<size_t>(row * 7 + col)]);
    }
  }
  EXPECT_THROW(writer->write(4, 0, 2, 7, values.data()), InternalError);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.npy"));
  writer->commit();
  EXPECT_TRUE(same_bits(values_of(read_raster(folder / "a.npy")), values));
}

TEST(Raster, ChecksOfTheGrid) {
  RasterGrid grid = sample_grid(10, 10);
  EXPECT_NO_THROW(require_square_metres(grid, "a"));
  const auto changed = [&](auto change) {
    RasterGrid other = grid;
    change(other);
    return other;
  };
  const auto refusal = [](const RasterGrid& g) {
    return error_of([&] { require_square_metres(g, "f.tif"); });
  };
  EXPECT_TRUE(has(refusal(changed([](auto& g) { g.crs_is_degrees = true; })),
                  "degrees [f.tif]: expected a projected CRS in metres"));
  EXPECT_TRUE(has(refusal(changed([](auto& g) { g.metres_per_unit = 0.3048; })), "0.3048 m"));
  EXPECT_TRUE(has(refusal(changed([](auto& g) { g.transform[5] = -3; })),
                  "2 m by 3 m [f.tif]: expected square pixels"));
  EXPECT_TRUE(has(refusal(changed([](auto& g) { g.transform[2] = 0.5; })), "rotated"));
  EXPECT_TRUE(has(refusal(changed([](auto& g) { g.transform[5] = 2; })), "mirrored"));
  EXPECT_TRUE(has(refusal(changed([](auto& g) { g.transform[1] = g.transform[5] = 0; })), "no size"));
  EXPECT_TRUE(has(refusal(changed([](auto& g) { g.transform[1] = std::nan(""); })), "not finite"));
  const auto mismatch = [&](const RasterGrid& g) {
    return error_of([&] { require_same_grid(grid, "a.tif", g, "b.tif"); });
  };
  EXPECT_EQ(mismatch(grid), "no InputError");
  EXPECT_EQ(mismatch(changed([](auto& g) { g.has_transform = false; })), "no InputError");
  EXPECT_TRUE(has(mismatch(changed([](auto& g) { g.rows = 9; })),
                  "9 x 10 cells (rows x columns) [b.tif]: expected 10 x 10 as in a.tif"));
  EXPECT_TRUE(has(mismatch(changed([](auto& g) { g.transform[0] += 2; })), "corner 674002, 6580000"));
  EXPECT_EQ(mismatch(changed([](auto& g) { g.transform[0] += 1e-4; })), "no InputError");
  EXPECT_TRUE(has(mismatch(changed([](auto& g) { g.transform[1] += 0.01; })), "pixels 2.01"));
}

// International and US survey feet (NIST Special Publication 811, appendix B) differ by two millionths.
TEST(Raster, UnitsOfHeight) {
  for (const char* name : {"ft", "foot", "Feet"})
    EXPECT_DOUBLE_EQ(metres_of_unit(name).value(), 0.3048) << name;
  for (const char* name : {"US survey foot", "us survey feet", "us-ft", "ftUS", "foot_us"})
    EXPECT_DOUBLE_EQ(metres_of_unit(name).value(), 0.30480060960121924) << name;
  for (const char* name : {"m", "metre", "Meter", "metres", "meters"})
    EXPECT_EQ(metres_of_unit(name), 1) << name;
  EXPECT_EQ(metres_of_unit("dm"), 0.1);
  EXPECT_EQ(metres_of_unit("cm"), 0.01);
  EXPECT_EQ(metres_of_unit("centimetre"), 0.01);
  EXPECT_EQ(metres_of_unit("mm"), 0.001);
  EXPECT_EQ(metres_of_unit("km"), 1000);
  EXPECT_DOUBLE_EQ(metres_of_unit("inch").value(), 0.0254);
  EXPECT_DOUBLE_EQ(metres_of_unit("yd").value(), 0.9144);
  for (const char* name : {"", "degC", "fathom"}) EXPECT_FALSE(metres_of_unit(name)) << name;
}

TEST(Raster, PixelsMayDifferByAThousandth) {
  RasterGrid grid = sample_grid(10, 10);
  grid.transform[5] = -2.0019;
  EXPECT_NO_THROW(require_square_metres(grid, "a"));
  EXPECT_DOUBLE_EQ(grid.pixel_size(), 2.00095);
  grid.transform[5] = -2.0021;
  EXPECT_TRUE(has(error_of([&] { require_square_metres(grid, "f.tif"); }), "2 m by 2.0021 m [f.tif]"));
}

TEST(Raster, WhatCannotBeHeightsIsRefusedByNameAndPlace) {
  const auto refusal = [](float value, HeightKind kind = HeightKind::absolute) {
    const float nan = std::nanf("");
    return error_of([&] { check_heights(array_of({nan, 12, 14, value, 13, 11}, 2, 3), kind, "dsm.tif"); });
  };
  EXPECT_EQ(refusal(120), "no InputError");
  EXPECT_EQ(refusal(-9999), "-9999 at row 1, column 0 [dsm.tif]: expected heights in metres");
  EXPECT_TRUE(has(refusal(1e30f), "1e+30 at row 1, column 0"));
  EXPECT_TRUE(has(refusal(-INFINITY), "-inf at row 1"));
  EXPECT_TRUE(has(refusal(-9000), "-9000 at row 1, column 0 and 14 at row 0, column 2"));
  EXPECT_TRUE(has(refusal(131, HeightKind::above_ground), "131 at row 1, column 0"));
  EXPECT_EQ(check_heights(array_of({0, 40}, 1, 2), HeightKind::above_ground, "t"), "");
  EXPECT_TRUE(has(check_heights(array_of({0, 61}, 1, 2), HeightKind::above_ground, "trees.tif"),
                  "--canopy absolute"));
  EXPECT_EQ(check_heights(array_of({0, 861}, 1, 2), HeightKind::absolute, "t"), "");
  EXPECT_EQ(check_heights(array_of({NAN, NAN}, 1, 2), HeightKind::absolute, "t"), "");
}

/// Heights in several blocks and parts of a pass, whose places are the first of their kind.
TEST(Raster, TheFirstLowestHighestAndImpossibleHeightAreNamed) {
  std::vector<float> heights(600'000, 7);
  const auto refusal = [&] {
    return error_of([&] { check_heights(array_of(heights, 600, 1000), HeightKind::absolute, "dsm.tif"); });
  };
  EXPECT_EQ(refusal(), "no InputError");
  heights[0] = std::nanf("");
  for (const size_t k : {9'001, 9'003, 500'000}) heights[k] = -5000;
  for (const size_t k : {8'998, 17'017, 300'001}) heights[k] = 5000;
  EXPECT_TRUE(has(refusal(), "-5000 at row 9, column 1 and 5000 at row 8, column 998")) << refusal();
  heights[400'007] = heights[599'999] = -9999;
  EXPECT_TRUE(has(refusal(), "-9999 at row 400, column 7")) << refusal();
  heights[399'999] = 9001;
  EXPECT_TRUE(has(refusal(), "9001 at row 399, column 999")) << refusal();
}

TEST(Raster, AMissingGdalNamesFoldersAndPackage) {
  std::string reason;
  EXPECT_FALSE(load_gdal({{"libno-such-gdal.so.9", "libno-such-gdal.so"}, {}}, reason));
  EXPECT_TRUE(has(reason, program_folder().string())) << reason;
  EXPECT_TRUE(has(reason, "libno-such-gdal.so.9 to libno-such-gdal.so in ")) << reason;
  try {
    throw_no_gdal(reason, "a.tif");
  } catch (const UnsupportedError& e) {
    EXPECT_TRUE(has(e.what(), "[a.tif]: expected GDAL 3 (Debian 12: apt install libgdal32")) << e.what();
    EXPECT_TRUE(has(e.what(), reason));
    EXPECT_TRUE(has(e.hint(), "LOCKSTEP_LIBRARY_PATH"));
  }
  EXPECT_FALSE(load_gdal({{"libm.so.6"}, {}}, reason));
  EXPECT_TRUE(has(reason, "libm.so.6 has no function CPL")) << reason;
}

TEST_F(GdalRaster, GeoTiffKeepsValuesAndGeoreference) {
  RasterGrid grid = sample_grid(300, 520);
  grid.crs_wkt = crs_from_epsg(3006);
  const auto values = sample_values(300 * 520);
  write_raster(folder / "a.tif", grid, array_of(values, 300, 520));
  const GeoRaster back = read_raster(folder / "a.tif");
  EXPECT_TRUE(same_bits(values_of(back), values));
  EXPECT_EQ(back.transform, grid.transform);
  EXPECT_FALSE(back.crs_is_degrees);
  EXPECT_NO_THROW(require_same_grid(grid, "a", back, "b"));
  EXPECT_NO_THROW(require_square_metres(back, "b"));
  EXPECT_EQ(file_count(folder.path()), 1u) << "no side files";
  write_raster(folder / "b.tif", grid, array_of(values, 300, 520));
  EXPECT_EQ(read_text(folder / "a.tif"), read_text(folder / "b.tif")) << "threads leave no trace in the file";
}

// A shaded pixel is 0. It must stay one where the input marks its missing cells by 0.
TEST_F(GdalRaster, WhatMarksMissingCellsOfAnInputMarksNoneOfAResult) {
  write_text(folder / "dsm.asc",
             "ncols 3\nnrows 1\nxllcorner 100\nyllcorner 200\ncellsize 2\nNODATA_value 0\n0 7 8\n");
  const GeoRaster dsm = read_raster(folder / "dsm.asc");
  EXPECT_TRUE(same_bits(values_of(dsm), {NAN, 7, 8}));
  const std::vector<float> shadow = {NAN, 0, 1};
  write_raster(folder / "shadow.tif", dsm, array_of(shadow, 1, 3));
  EXPECT_TRUE(same_bits(values_of(read_raster(folder / "shadow.tif")), shadow));
  EXPECT_TRUE(has(read_text(folder / "shadow.tif"), "nan")) << "other programs learn it from the file";
}

TEST_F(GdalRaster, FurtherBandsAreCountedAndChosen) {
  write_raster(folder / "a.tif", sample_grid(1, 2), array_of({1, 2}, 1, 2));
  write_raster(folder / "b.tif", sample_grid(1, 2), array_of({3, 4}, 1, 2));
  std::string bands;
  for (const char* file : {"a.tif", "b.tif"})
    bands += fmt::format(
        "<VRTRasterBand dataType='Float32' band='{}'><SimpleSource><SourceFilename relativeToVRT='1'>{}"
        "</SourceFilename></SimpleSource></VRTRasterBand>",
        file[0] - 'a' + 1, file);
  write_text(folder / "two.vrt", "<VRTDataset rasterXSize='2' rasterYSize='1'>" + bands + "</VRTDataset>");
  EXPECT_EQ(read_raster(folder / "two.vrt").bands, 2);
  EXPECT_EQ(values_of(read_raster(folder / "two.vrt")), (std::vector<float>{1, 2}));
  EXPECT_EQ(values_of(read_raster(folder / "two.vrt", {.band = 2})), (std::vector<float>{3, 4}));
  EXPECT_TRUE(has(error_of([&] { read_raster(folder / "two.vrt", {.band = 3}); }), "band 3 of 2"));
}

TEST_F(GdalRaster, AVrtReadsBelowItsFolderAlone) {
  std::filesystem::create_directories(folder / "own/below");
  const auto said = [&](const std::string& source, bool relative) {
    write_text(
        folder / "own/a.vrt",
        fmt::format("<VRTDataset rasterXSize='1' rasterYSize='1'><VRTRasterBand dataType='Float32' band='1'>"
                    "<SimpleSource><SourceFilename relativeToVRT='{}'>{}</SourceFilename></SimpleSource>"
                    "</VRTRasterBand></VRTDataset>",
                    int(relative), source));
    return error_of([&] { read_raster(folder / "own/a.vrt"); });
  };
  for (const char* file : {"own/b.tif", "own/below/b.tif", "b.tif", "own.tif"})
    write_raster(folder / file, sample_grid(1, 1), array_of({1}, 1, 1));
  EXPECT_EQ(said("b.tif", true), "no InputError");
  EXPECT_EQ(said("below/b.tif", true), "no InputError");
  EXPECT_EQ(said((folder / "own/b.tif").string(), false), "no InputError");
  EXPECT_TRUE(has(said("../b.tif", true), "outside of its folder"));
  EXPECT_TRUE(has(said("../own.tif", true), "outside of its folder"));
  EXPECT_TRUE(has(said((folder / "b.tif").string(), false), "outside of its folder"));
}

// Each cell in turn is the only one that the mask leaves out.
TEST_F(GdalRaster, MaskedCellsAreMissing) {
  const std::vector<float> heights = {1, 2, 3, 4, 5, 6};
  write_raster(folder / "a.tif", sample_grid(2, 3), array_of(heights, 2, 3));
  const std::string source =
      "<SimpleSource><SourceFilename relativeToVRT='1'>{}</SourceFilename></SimpleSource></VRTRasterBand>";
  for (size_t out = 0; out < heights.size(); ++out) {
    std::vector<float> mask(heights.size(), 255), expected = heights;
    mask[out] = 0, expected[out] = NAN;
    write_raster(folder / "mask.tif", sample_grid(2, 3), array_of(mask, 2, 3));
    write_text(folder / "masked.vrt",
               "<VRTDataset rasterXSize='3' rasterYSize='2'><VRTRasterBand dataType='Float32' band='1'>" +
                   fmt::format(fmt::runtime(source), "a.tif") + "<MaskBand><VRTRasterBand dataType='Byte'>" +
                   fmt::format(fmt::runtime(source), "mask.tif") + "</MaskBand></VRTDataset>");
    EXPECT_TRUE(same_bits(values_of(read_raster(folder / "masked.vrt")), expected)) << "cell " << out;
  }
}

TEST_F(GdalRaster, WindowsFromManyThreads) {
  const RasterGrid grid = sample_grid(600, 700);
  const auto values = sample_values(600 * 700);
  const auto writer = RasterWriter::create(folder / "a.tif", grid);
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t row = t * 30; row < 600; row += 120)
        writer->write(row, 0, 30, 700, &values[static_cast<size_t>(row * 700)]);
    });
  }
  for (auto& thread : threads) thread.join();
  writer->commit();
  const auto reader = RasterReader::open(folder / "a.tif");
  std::vector<float> window(50 * 60);
  reader->read(123, 456, 50, 60, window.data());
  for (int64_t r = 0; r < 50; ++r) {
    for (int64_t c = 0; c < 60; ++c) {
      ASSERT_EQ(window[static_cast<size_t>(r * 60 + c)],
                values[static_cast<size_t>((123 + r) * 700 + 456 + c)]);
    }
  }
  EXPECT_THROW(reader->read(590, 0, 20, 10, window.data()), InternalError);
}

TEST_F(GdalRaster, DegreesAreRefusedWithTheReason) {
  RasterGrid grid = sample_grid(4, 4);
  grid.crs_wkt = crs_from_epsg(4326);
  grid.transform = {12, 0.001, 0, 57, 0, -0.001};
  write_raster(folder / "a.tif", grid, array_of(std::vector<float>(16, 1.0f), 4, 4));
  const GeoRaster back = read_raster(folder / "a.tif");
  EXPECT_TRUE(back.crs_is_degrees);
  EXPECT_TRUE(has(error_of([&] { require_square_metres(back, "a.tif"); }), "degrees"));
}

TEST_F(GdalRaster, AnotherCrsIsRefusedAndTheSameInOtherWordsIsNot) {
  RasterGrid a = sample_grid(4, 4), b = a;
  a.crs_wkt = crs_from_epsg(3006);
  b.crs_wkt = crs_from_epsg(3007);
  EXPECT_TRUE(has(error_of([&] { require_same_grid(a, "a.tif", b, "b.tif"); }),
                  "another coordinate reference system [b.tif]"));
  b.crs_wkt = "EPSG:3006";
  EXPECT_NO_THROW(require_same_grid(a, "a.tif", b, "b.tif"));
}

TEST_F(GdalRaster, AsciiGridsMissingCellsAndText) {
  write_text(folder / "a.asc",
             "ncols 3\nnrows 2\nxllcorner 100\nyllcorner 200\ncellsize 2\nNODATA_value -9999\n1 2.5 -9999\n4 "
             "nan 6\n");
  const GeoRaster raster = read_raster(folder / "a.asc");
  EXPECT_TRUE(same_bits(values_of(raster), {1, 2.5f, NAN, 4, NAN, 6})) << values_of(raster)[4];
  EXPECT_EQ(raster.transform, (std::array<double, 6>{100, 2, 0, 204, 0, -2}));
  EXPECT_TRUE(raster.crs_wkt.empty());
}

TEST_F(GdalRaster, NoRasterNoFileNoBand) {
  write_text(folder / "a.tif", "no raster");
  EXPECT_TRUE(has(error_of([&] { read_raster(folder / "a.tif"); }), "a.tif]: expected a raster"));
  EXPECT_NE(error_of([&] { read_raster(folder / "none.tif"); }), "no InputError");
  EXPECT_NE(error_of([&] { read_raster(folder.path()); }), "no InputError");
  write_raster(folder / "b.tif", sample_grid(2, 2), array_of({1, 2, 3, 4}, 2, 2));
  EXPECT_TRUE(has(error_of([&] { read_raster(folder / "b.tif", {.band = 0}); }), "band 0 of 1"));
}

TEST_F(GdalRaster, AnUnfinishedWriteLeavesTheEarlierFile) {
  write_raster(folder / "a.tif", sample_grid(2, 2), array_of({1, 2, 3, 4}, 2, 2));
  {
    const auto writer = RasterWriter::create(folder / "a.tif", sample_grid(50, 50));
    const std::vector<float> row(50);
    writer->write(0, 0, 1, 50, row.data());
  }
  EXPECT_EQ(values_of(read_raster(folder / "a.tif")), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(file_count(folder.path()), 1u);
}

TEST_F(GdalRaster, PlaceOnEarth) {
  RasterGrid grid = sample_grid(2, 2);
  grid.crs_wkt =
      crs_from_epsg(32633);  // UTM zone 33 north: 15° E at easting 500 km, the equator at northing 0.
  grid.transform = {500000 - 1, 1, 0, 1, 0, -1};
  const LonLat place = centre_lon_lat(grid);
  EXPECT_NEAR(place.lon, 15.0, 1e-9);
  EXPECT_NEAR(place.lat, 0.0, 1e-9);
  grid.crs_wkt.clear();
  EXPECT_THROW(centre_lon_lat(grid), InputError);
  EXPECT_THROW(crs_from_epsg(1), InputError);
}

TEST_F(GdalRaster, GoteborgFilesAgree) {
  const auto data = data_folder() / "urban" / "goteborg";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "no " << data;
  const GeoRaster dsm = read_raster(data / "DSM_KRbig.tif"), dem = read_raster(data / "DEM_KRbig.tif");
  const GeoRaster cdsm = read_raster(data / "CDSM_KRbig.tif"), ascii = read_raster(data / "CDSM_KRbig.asc");
  EXPECT_EQ(dsm.rows, 223);
  EXPECT_EQ(dsm.cols, 234);
  EXPECT_NO_THROW(require_square_metres(dsm, "DSM"));
  for (const GeoRaster* other : {&dem, &cdsm, &ascii})
    EXPECT_NO_THROW(require_same_grid(dsm, "DSM", *other, "other"));
  const LonLat place = centre_lon_lat(dsm);
  EXPECT_NEAR(place.lat, 57.7, 0.1);
  EXPECT_NEAR(place.lon, 11.97, 0.1);
}

}  // namespace
