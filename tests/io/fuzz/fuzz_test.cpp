// Mutated arrays, configurations, pictures and rasters.
#include <gtest/gtest.h>

#include "core/temporary_folder.hpp"
#include "io/arrays/npy.hpp"
#include "io/arrays/npz_file.hpp"
#include "io/fuzz/fuzz_files.hpp"
#include "io/pictures/png.hpp"
#include "io/rasters/raster.hpp"
#include "io/text/file.hpp"
#include "io/text/toml.hpp"
#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

TEST(Fuzz, Npy) {
  const std::vector<float> values(60, 1.5f);
  const std::vector<uint8_t> small(7, 3);
  const Array array = Array::of(values, {3, 4, 5});
  fuzz({encode_npy(array), encode_npy(array, {.fortran_order = true, .big_endian = true}),
        encode_npy(Array::of(small))},
       [](const Bytes& bytes) {
         const Array back = parse_npy(bytes, "fuzz");
         ASSERT_EQ(back.raw().size(), static_cast<size_t>(back.bytes()));
         back.to(Storage::f64);
       });
}

TEST(Fuzz, Npz) {
  TemporaryFolder folder;
  const std::vector<float> values(300, 1.5f);
  const NpzArrays arrays = {{"a", Array::of(values, {3, 100})}, {"b", Array::of(values)}};
  write_npz(folder / "s.npz", arrays);
  write_npz(folder / "d.npz", arrays, NpzCompression::deflated);
  fuzz({read_file(folder / "s.npz"), read_file(folder / "d.npz")}, [](const Bytes& bytes) {
    const NpzFile file(bytes, "fuzz");
    for (const std::string& name : file.names()) {
      const NpyHeader header = file.header(name);
      const Array array = file.read(name, {header.storage, -1, header.shape});
      ASSERT_EQ(array.raw().size(), static_cast<size_t>(array.bytes()));
      EXPECT_THROW(file.read(name, {header.storage, 32}), InputError);
    }
  });
}

TEST(Fuzz, Toml) {
  fuzz({bytes_of("title = \"x\\u00e9\" # c\n[a.b]\nx = [1, 2.5e3, {y = true, z = 'q'}]\n[[p]]\nv = "
                 "0x1f\n[[p]]\nw = -inf\n"),
        bytes_of("text = \"\"\"\na \\\n  b\"\"\"\nraw = '''x'''\n\"k e y\".z = 1_000\n[t]\ninner = [[1], [2, "
                 "[3]]]\n")},
       [](const Bytes& bytes) {
         parse_toml(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "fuzz");
       });
}

TEST(Fuzz, Png) {
  TemporaryFolder folder;
  Image image(40, 30, 3);
  for (size_t k = 0; k < image.pixels.size(); ++k) image.pixels[k] = static_cast<uint8_t>(k * k);
  write_png(folder / "a.png", image);
  fuzz({read_file(folder / "a.png")}, [](const Bytes& bytes) { parse_png(bytes, "fuzz"); });
}

// Rows far behind the end of a text grid: refused at once, though GDAL would look for each of them again.
TEST(Fuzz, WindowsBehindTheEndOfATextGrid) {
  if (const std::string reason = gdal_unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
  TemporaryFolder folder;
  const auto path = folder / "short.asc";
  write_text(path, "ncols 4\nnrows 99\nxllcorner 1\nyllcorner 2\ncellsize 2\n1 2 3 4\n5 6 7 8\n");
  const auto reader = RasterReader::open(path);
  std::vector<float> out(4 * 64);
  for (int k = 0; k < 2; ++k) EXPECT_THROW(reader->read(35, 0, 64, 4, out.data()), InputError);
  reader->read(1, 0, 1, 4, out.data());
  EXPECT_EQ(out[3], 8.0f);
}

class FuzzGdal : public testing::TestWithParam<std::string> {};

// Opens a mutated raster by its suffix and reads a bounded part of it.
TEST_P(FuzzGdal, Raster) {
  if (const std::string reason = gdal_unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
  TemporaryFolder folder;
  std::vector<Bytes> seeds;
  if (GetParam() == "asc") {
    seeds = {bytes_of("ncols 4\nnrows 2\nxllcorner 1\nyllcorner 2\ncellsize 2\nNODATA_value -9999\n1 2.5 "
                      "-9999 4\n4 nan 6 7\n"),
             bytes_of("ncols 2\nnrows 3\nxllcenter 1.5\nyllcenter 2\ndx 1\ndy 1\n1 2\n3 4\n5 6\n")};
  } else {
    for (const int64_t size : {20, 300}) {
      RasterGrid grid;
      grid.rows = size;
      grid.cols = size + 3;
      grid.has_transform = true;
      grid.crs_wkt = crs_from_epsg(3006);
      std::vector<float> values(static_cast<size_t>(grid.rows * grid.cols));
      for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k % 97);
      write_raster(folder / "seed.tif", grid, Array::of(values, {grid.rows, grid.cols}));
      seeds.push_back(read_file(folder / "seed.tif"));
    }
  }
  const auto path = folder / ("fuzz." + GetParam());
  fuzz(seeds, [&](const Bytes& bytes) {
    write_text(path, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    const auto reader = RasterReader::open(path);
    const RasterGrid& grid = reader->grid();
    ASSERT_GT(grid.rows, 0);
    ASSERT_GT(grid.cols, 0);
    const int64_t rows = std::min<int64_t>(grid.rows, 64), cols = std::min<int64_t>(grid.cols, 64);
    std::vector<float> out(static_cast<size_t>(rows * cols));
    reader->read(grid.rows - rows, grid.cols - cols, rows, cols, out.data());
    try {
      require_square_metres(grid, "fuzz");
    } catch (const InputError&) {}
  });
}
INSTANTIATE_TEST_SUITE_P(Formats, FuzzGdal, testing::Values("tif", "asc"),
                         [](const auto& format) { return format.param; });

}  // namespace
