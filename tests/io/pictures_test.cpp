#include <gtest/gtest.h>

#include <cmath>

#include "core/temporary_folder.hpp"
#include "io/pictures/map_picture.hpp"
#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

TEST(Png, RoundTrips) {
  TemporaryFolder folder;
  for (const int channels : {1, 3, 4}) {
    Image image(13, 7, channels);
    for (size_t k = 0; k < image.pixels.size(); ++k) image.pixels[k] = static_cast<uint8_t>(k * 37);
    write_png(folder / "a.png", image);
    const Image back = read_png(folder / "a.png", channels);
    EXPECT_EQ(back.width, 13);
    EXPECT_EQ(back.height, 7);
    EXPECT_EQ(back.pixels, image.pixels);
  }
}

TEST(Png, Refusals) {
  TemporaryFolder folder;
  write_text(folder / "no.png", "no picture");
  EXPECT_THROW(read_png(folder / "no.png"), InputError);
  EXPECT_THROW(write_png(folder / "a.png", Image()), InternalError);
  EXPECT_THROW(write_png(folder / "a.png", Image(2, 2, 2)), InternalError);
}

TEST(ColorMap, LightnessRunsEvenly) {
  for (const ColorMap map :
       {ColorMap::sky, ColorMap::light, ColorMap::terrain, ColorMap::canopy, ColorMap::heat}) {
    const double first = oklab_lightness(color(map, 0)), last = oklab_lightness(color(map, 1));
    for (int k = 1; k <= 64; ++k) {
      const double step = oklab_lightness(color(map, k / 64.0)) - oklab_lightness(color(map, (k - 1) / 64.0));
      EXPECT_GT(step * (last - first), 0) << "map " << static_cast<int>(map) << " at " << k;
      EXPECT_LT(std::abs(step), 2.5 * std::abs(last - first) / 64)
          << "map " << static_cast<int>(map) << " at " << k;
    }
  }
}

TEST(ColorMap, DirectionsCloseTheCircleAndOddInputIsSafe) {
  EXPECT_EQ(color(ColorMap::cycle, 0), color(ColorMap::cycle, 1));
  EXPECT_EQ(color(ColorMap::sky, std::nan("")), color(ColorMap::sky, 0));
  EXPECT_EQ(color(ColorMap::sky, -5), color(ColorMap::sky, 0));
  EXPECT_EQ(color(ColorMap::sky, 1e30), color(ColorMap::sky, 1));
}

TEST(ColorMap, OklchGivesKnownColours) {
  EXPECT_EQ(from_oklch(1, 0, 0), (Rgb{255, 255, 255}));
  EXPECT_EQ(from_oklch(0, 0, 0), (Rgb{0, 0, 0}));
  const Rgb red = from_oklch(0.62796, 0.25768, 29.234);  // sRGB red in Oklch.
  EXPECT_NEAR(red[0], 255, 1);
  EXPECT_NEAR(red[1], 0, 2);
  EXPECT_NEAR(red[2], 0, 2);
}

TEST(Hillshade, FlatAndTiltedPlanes) {
  const int64_t n = 8;
  std::vector<float> flat(n * n, 5.0f), to_south_east(n * n), to_north_west(n * n);
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      to_south_east[static_cast<size_t>(r * n + c)] =
          static_cast<float>(-(r + c));  // Falls to the south-east.
      to_north_west[static_cast<size_t>(r * n + c)] = static_cast<float>(r + c);
    }
  }
  EXPECT_NEAR(hillshade(flat, n, n, 1)[27], std::sqrt(0.5), 1e-6);
  // A slope of √2 that faces the light has the cosine of the angle between (-1,1,1)/√3 and (-1,1,√2)/2.
  EXPECT_NEAR(hillshade(to_north_west, n, n, 1)[27], (2 + std::sqrt(2)) / (2 * std::sqrt(3)), 1e-6);
  EXPECT_EQ(hillshade(to_south_east, n, n, 1)[27], 0.0f);
}

TEST(MapPicture, ShowsValuesMissingCellsAndLegend) {
  std::vector<float> values(20 * 30, 0.0f);
  for (size_t k = 300; k < 600; ++k) values[k] = 1.0f;
  values[0] = std::nanf("");
  MapPictureOptions options;
  options.title = "Sky view";
  options.unit = "share";
  const Image image = draw_map(values, 20, 30, options);
  EXPECT_EQ(960 / 30 * 30 < image.width, true);
  const auto count = [&](const Rgb& wanted) {
    int n = 0;
    for (size_t k = 0; k < image.pixels.size(); k += 3) {
      n += image.pixels[k] == wanted[0] && image.pixels[k + 1] == wanted[1] &&
           image.pixels[k + 2] == wanted[2];
    }
    return n;
  };
  EXPECT_GE(count(color(ColorMap::sky, 0)), 32 * 32 * 299);
  EXPECT_GE(count(color(ColorMap::sky, 1)), 32 * 32 * 300);
  EXPECT_EQ(count({222, 224, 228}), 32 * 32);
  EXPECT_GT(count({38, 42, 52}), 100) << "letters of title, ticks and scale";
}

TEST(MapPicture, OddShapesAndConstantGrids) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 3000}, {3000, 1}, {5, 5}}) {
    const std::vector<float> values(static_cast<size_t>(rows * cols), 3.0f);
    MapPictureOptions options;
    options.relief = &values;
    EXPECT_NO_THROW(draw_map(values, rows, cols, options)) << rows << " x " << cols;
  }
  const std::vector<float> missing(9, std::nanf(""));
  EXPECT_NO_THROW(draw_map(missing, 3, 3, {}));
  EXPECT_THROW(draw_map(missing, 3, 4, {}), InternalError);
}

TEST(Text, WidthAndUnknownCharacters) {
  EXPECT_EQ(text_width("", 2), 0);
  EXPECT_EQ(text_width("ab", 1), 11);
  EXPECT_EQ(text_width("°", 1), 5);
  Image image(20, 10, 3, 255);
  EXPECT_NO_THROW(draw_text(image, -3, -3, "\xff\xf0 Aé", {0, 0, 0}, 1));
}

}  // namespace
