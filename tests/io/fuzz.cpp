// Mutated files of every format that Lockstep reads: each is read whole or refused by an error of Lockstep's
// own. LOCKSTEP_FUZZ_COUNT sets the files per format (default 2000), LOCKSTEP_FUZZ_SEED the first seed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>

#include "core/temporary_folder.hpp"
#include "io/file.hpp"
#include "io/npy.hpp"
#include "io/png.hpp"
#include "io/raster.hpp"
#include "io/toml.hpp"
#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;
using Bytes = std::vector<std::byte>;

int64_t environment_number(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : fallback;
}

Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// One to eight changes: flipped bits, extreme words, cut, repeated, removed or exchanged stretches.
void mutate(Bytes& bytes, std::mt19937_64& random, const std::vector<Bytes>& seeds) {
  const auto below = [&](size_t n) { return n ? static_cast<size_t>(random() % n) : 0; };
  const size_t changes = 1 + below(8);
  for (size_t k = 0; k < changes && !bytes.empty(); ++k) {
    const size_t at = below(bytes.size()), length = 1 + below(std::min<size_t>(bytes.size() - at, 64));
    switch (random() % 8) {
      case 0:
      case 1: bytes[at] ^= std::byte(1u << below(8)); break;
      case 2: bytes[at] = std::byte(random()); break;
      case 3: {
        constexpr uint8_t kExtremes[] = {0x00, 0xff, 0x7f, 0x80, 0x01};
        std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(at), std::min<size_t>(length, 8),
                    std::byte(kExtremes[below(std::size(kExtremes))]));
        break;
      }
      case 4: bytes.resize(at); break;
      case 5: {
        const Bytes part(bytes.begin() + static_cast<ptrdiff_t>(at),
                         bytes.begin() + static_cast<ptrdiff_t>(at + length));
        bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(below(bytes.size())), part.begin(), part.end());
        break;
      }
      case 6:
        bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(at),
                    bytes.begin() + static_cast<ptrdiff_t>(at + length));
        break;
      default: {
        const Bytes& other = seeds[below(seeds.size())];
        if (other.empty()) break;
        const size_t from = below(other.size()),
                     count = std::min({length, other.size() - from, bytes.size() - at});
        std::copy_n(other.begin() + static_cast<ptrdiff_t>(from), count,
                    bytes.begin() + static_cast<ptrdiff_t>(at));
      }
    }
  }
}

// Reads every mutated file; fails on any exception that is not Lockstep's. A crash ends the program.
void fuzz(const std::vector<Bytes>& seeds, const std::function<void(const Bytes&)>& read) {
  const int64_t count = environment_number("LOCKSTEP_FUZZ_COUNT", 2000);
  const auto first = static_cast<uint64_t>(environment_number("LOCKSTEP_FUZZ_SEED", 1));
  for (const Bytes& seed : seeds) ASSERT_NO_THROW(read(seed)) << "an unchanged file must be read";
  int64_t read_whole = 0;
  for (int64_t k = 0; k < count; ++k) {
    std::mt19937_64 random(first * 1'000'003 + static_cast<uint64_t>(k));
    Bytes bytes = seeds[static_cast<size_t>(k) % seeds.size()];
    mutate(bytes, random, seeds);
    try {
      read(bytes);
      ++read_whole;
    } catch (const Error& e) {
      ASSERT_EQ(std::string_view(e.what()).find('\n'), std::string_view::npos) << "errors are one line";
    } catch (const std::exception& e) { FAIL() << "file " << k << ": " << e.what(); }
  }
  EXPECT_LT(read_whole, count) << "some mutations must be noticed";
  fmt::print("{} mutated files, {} still readable\n", count, read_whole);
}

TEST(Fuzz, Npy) {
  const std::vector<float> values(60, 1.5f);
  const std::vector<uint8_t> small(7, 3);
  const NpyArray array({3, 4, 5}, std::span<const float>(values));
  fuzz({encode_npy(array), encode_npy(array, {.fortran_order = true, .big_endian = true}),
        encode_npy(NpyArray({7}, std::span<const uint8_t>(small)))},
       [](const Bytes& bytes) {
         const NpyArray back = parse_npy(bytes, "fuzz");
         ASSERT_EQ(back.data.size(), static_cast<size_t>(back.elements()) * size_of(back.type));
         back.to_f64();
       });
}

TEST(Fuzz, Npz) {
  TemporaryFolder folder;
  const std::vector<float> values(300, 1.5f);
  const NpzArrays arrays = {{"a", NpyArray({3, 100}, std::span<const float>(values))},
                            {"b", NpyArray({300}, std::span<const float>(values))}};
  write_npz(folder / "s.npz", arrays);
  write_npz(folder / "d.npz", arrays, NpzCompression::deflated);
  fuzz({read_file(folder / "s.npz"), read_file(folder / "d.npz")},
       [](const Bytes& bytes) { parse_npz(bytes, "fuzz"); });
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
      write_raster(folder / "seed.tif", grid, values);
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
