// Mutated world files of a basemap.
#include "core/temporary_folder.hpp"
#include "io/fuzz/fuzz_files.hpp"
#include "io/rasters/basemap.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

TEST(Fuzz, BasemapWorldFile) {
  if (const std::string reason = gdal_unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
  TemporaryFolder folder;
  write_png(folder / "map.png", Image(9, 7, 3, 80));
  RasterGrid grid;
  grid.rows = 6;
  grid.cols = 5;
  grid.has_transform = true;
  grid.transform = {674000, 2, 0, 6580000, 0, -2};
  fuzz({bytes_of("2\n0\n0\n-2\n674001\n6579999\n"),
        bytes_of("0.5\r\n0.0\r\n0.0\r\n-0.5\r\n674000.25\r\n6579999.75\r\n")},
       [&](const Bytes& bytes) {
         write_text(folder / "map.pgw",
                    std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
         const Image image = read_basemap(folder / "map.png", grid, "dsm.tif");
         ASSERT_GE(image.width, 1);
         ASSERT_LE(image.width, 2048);
         ASSERT_LE(image.height, 2048);
         ASSERT_EQ(image.pixels.size(), 3u * size_t(image.width) * size_t(image.height));
       });
}

}  // namespace
