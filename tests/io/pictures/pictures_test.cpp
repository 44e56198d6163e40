#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/temporary_folder.hpp"
#include "io/pictures/color_table.hpp"
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

TEST(ColorMap, ATableIsWithinALevel) {
  for (const ColorMap map : {ColorMap::sky, ColorMap::light, ColorMap::terrain, ColorMap::canopy,
                             ColorMap::heat, ColorMap::cycle, ColorMap::balance}) {
    const ColorTable table(map);
    for (int k = 0; k <= 50'000; ++k) {
      const Rgb got = table(k / 50e3), exact = color(map, k / 50e3);
      for (size_t c = 0; c < 3; ++c) ASSERT_LE(std::abs(got[c] - exact[c]), 1) << k;
    }
    EXPECT_EQ(table(0), color(map, 0));
    EXPECT_EQ(table(1), color(map, 1));
    EXPECT_EQ(table(std::nan("")), color(map, 0));
    EXPECT_EQ(table(-5), color(map, 0));
    EXPECT_EQ(table(1e30), color(map, 1));
  }
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
  EXPECT_GT(count({222, 224, 228}), 32 * 32 + 200) << "the cell, and its swatch in the legend";
  EXPECT_LT(count({222, 224, 228}), 32 * 32 + 400);
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

TEST(MapPicture, ClassesHaveSwatchesAndNoBar) {
  const Rgb sun = {250, 240, 200}, shade = {40, 50, 70}, tree = {80, 120, 80};
  std::vector<float> values(40 * 40, 1.0f);
  for (size_t k = 0; k < 800; ++k) values[k] = 0.0f;
  MapPictureOptions options;
  options.classes = {{1, "sun", sun}, {0.5f, "shade of trees", tree}, {0, "shade", shade}};
  const auto count = [](const Image& image, const Rgb& wanted) {
    int n = 0;
    for (size_t k = 0; k < image.pixels.size(); k += 3)
      n += std::equal(wanted.begin(), wanted.end(), image.pixels.begin() + static_cast<ptrdiff_t>(k));
    return n;
  };
  const Image image = draw_map(values, 40, 40, options);
  const int half = 800 * 24 * 24;
  for (const Rgb& ink : {sun, shade}) {
    EXPECT_GT(count(image, ink), half + 200) << "the map and its swatch";
    EXPECT_LT(count(image, ink), half + 400);
  }
  EXPECT_EQ(count(image, tree), 0) << "the legend has the classes that occur";
  EXPECT_EQ(shown_labels(values, 40, 40, options), (std::vector<std::string>{"sun", "shade"}));
  EXPECT_LT(count(image, color(ColorMap::sky, 0.5)), 20) << "no bar of colours";
  // Of blocks of three cells the most frequent class counts: colours are not mixed, and nothing between sun and shade occurs.
  std::vector<float> fine(4200 * 4);
  for (size_t k = 0; k < fine.size(); ++k) fine[k] = k % 2 ? 1.0f : 0.0f;
  const Image blocks = draw_map(fine, 4, 4200, options);
  EXPECT_EQ(count(blocks, tree), 0);
  const int swatch = 17 * 17;
  EXPECT_NEAR(count(blocks, sun), 1400 + swatch, 80);
  EXPECT_NEAR(count(blocks, shade), 1400 + swatch, 80);
}

// Roofs and missing cells scale no colour, outlines are inside their masks, and the legend has what the map shows.
TEST(MapPicture, CoversAndOutlines) {
  std::vector<float> values(16, 1.0f);
  values[0] = 1000;
  values[15] = std::nanf("");
  values[5] = 0;
  std::vector<uint8_t> cover(16), crowns(16);
  cover[0] = 1;
  crowns[10] = 1;
  MapPictureOptions options;
  options.target_pixels = 4 * 40;
  const Rgb roof = {226, 224, 221}, line = {1, 90, 3};
  options.cover = &cover;
  options.covers = {{"roof", roof}, {"water", {1, 2, 3}}};
  options.outlines = {{&crowns, "crown", line, false}};
  EXPECT_EQ(shown_labels(values, 4, 4, options), (std::vector<std::string>{"roof", "no data", "crown"}));
  const Image image = draw_map(values, 4, 4, options);
  const auto count = [&](const Rgb& wanted) {
    int n = 0;
    for (size_t k = 0; k < image.pixels.size(); k += 3)
      n += std::equal(wanted.begin(), wanted.end(), image.pixels.begin() + static_cast<ptrdiff_t>(k));
    return n;
  };
  EXPECT_GE(count(roof), 40 * 40 + 16 * 16);
  EXPECT_GE(count(color(options.map, 1)), 12 * 40 * 40) << "the roof stretches no scale";
  EXPECT_GE(count(line), 40 * 40 - 36 * 36) << "two pixels wide";
  EXPECT_LE(count(line), 40 * 40 - 36 * 36 + 200) << "and the swatch";
  std::fill(cover.begin(), cover.end(), uint8_t{0});
  std::fill(crowns.begin(), crowns.end(), uint8_t{0});
  values[15] = 2;
  EXPECT_TRUE(shown_labels(values, 4, 4, options).empty());
  const Image bare = draw_map(values, 4, 4, options);
  EXPECT_EQ(bare.width, image.width) << "frames of a film have one size";
  EXPECT_EQ(bare.height, image.height);
}

// The light of the relief leaves the colours of values as the legend has them.
TEST(MapPicture, ReliefChangesNoColour) {
  std::vector<float> values(64, 3.0f), heights(64);
  for (size_t k = 0; k < 64; ++k) heights[k] = static_cast<float>(k * k % 17);
  MapPictureOptions options;
  const Image flat = draw_map(values, 8, 8, options);
  options.relief = &heights;
  EXPECT_EQ(draw_map(values, 8, 8, options).pixels, flat.pixels);
  options.map = ColorMap::terrain;
  EXPECT_NE(draw_map(values, 8, 8, options).pixels, flat.pixels);
}

TEST(MapPicture, SignedFieldsLieEvenlyAboutZero) {
  MapPictureOptions options;
  options.map = ColorMap::balance;
  const auto middle = [&](std::vector<float> values) {
    Image image = draw_map(values, 1, 3, options);
    // The second of three cells, well inside.
    int y = 0;
    while (image.at(30, y)[2] == 255 && image.at(30, y)[0] == 255) ++y;
    const uint8_t* p = image.at(24 + 480, y + 100);
    return Rgb{p[0], p[1], p[2]};
  };
  EXPECT_EQ(middle({-1, 0, 10}), color(ColorMap::balance, 0.5));
  EXPECT_EQ(middle({-10, 0, 1}), color(ColorMap::balance, 0.5));
  EXPECT_EQ(middle({-10, 5, 1}), color(ColorMap::balance, 0.75));
  const Rgb low = color(ColorMap::balance, 0), high = color(ColorMap::balance, 1),
            zero = color(ColorMap::balance, 0.5);
  EXPECT_NEAR(oklab_lightness(low), oklab_lightness(high), 0.02);
  EXPECT_GT(oklab_lightness(zero), 0.95);
  EXPECT_GT(low[2], low[0] + 50) << "blue below";
  EXPECT_GT(high[0], high[2] + 50) << "red above";
  for (int k = 1; k <= 32; ++k)
    EXPECT_NEAR(oklab_lightness(color(ColorMap::balance, 0.5 - k / 64.0)),
                oklab_lightness(color(ColorMap::balance, 0.5 + k / 64.0)), 0.03);
}

TEST(MapPicture, FactsStandOnTheMap) {
  const std::vector<float> values(64 * 64, 0.5f);
  MapPictureOptions options;
  options.title =
      "A title that is so long that one line above the map and its legend cannot hold all of it, "
      "which is why it goes on below";
  const Image plain = draw_map(values, 64, 64, options);
  options.facts = {
      "2015-06-21 15:00, UTC+2", "SWEREF99 TM (EPSG:3006)", MapSun{225, 35}, true, "Göteborg", "as it is"};
  Image full = draw_map(values, 64, 64, options);
  EXPECT_GT(full.height, plain.height);
  const std::string title = std::exchange(options.title, "short");
  const Image short_title = draw_map(values, 64, 64, options);
  EXPECT_EQ(full.width, short_title.width) << "titles are broken into lines";
  EXPECT_GT(full.height, short_title.height);
  options.title = title;
  int sun = 0, x_sum = 0, y_sum = 0;
  for (int y = 0; y < full.height; ++y)
    for (int x = 0; x < full.width; ++x) {
      const uint8_t* p = full.at(x, y);
      if (p[0] == 240 && p[1] == 168 && p[2] == 30) ++sun, x_sum += x, y_sum += y;
    }
  ASSERT_GT(sun, 60);
  // On the dial: to the south-west, (90 - 35) / 90 of the way to the rim. A second sun due north-east mirrors it.
  options.facts.sun = MapSun{45, 35};
  Image mirrored = draw_map(values, 64, 64, options);
  int other = 0, x_other = 0, y_other = 0;
  for (int y = 0; y < mirrored.height; ++y)
    for (int x = 0; x < mirrored.width; ++x) {
      const uint8_t* p = mirrored.at(x, y);
      if (p[0] == 240 && p[1] == 168 && p[2] == 30) ++other, x_other += x, y_other += y;
    }
  const double shift = 2 * 34 * 55.0 / 90 * std::sqrt(0.5);
  EXPECT_NEAR(double(x_other) / other - double(x_sum) / sun, shift, 1);
  EXPECT_NEAR(double(y_other) / other - double(y_sum) / sun, -shift, 1);
}

TEST(Hillshade, FollowsTheSun) {
  const int64_t n = 5;
  std::vector<float> to_south(n * n);
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < n; ++c) to_south[static_cast<size_t>(r * n + c)] = static_cast<float>(-r);  // 45°
  EXPECT_NEAR(hillshade(to_south, n, n, 1, {180, 45})[12], 1, 1e-6);
  EXPECT_NEAR(hillshade(to_south, n, n, 1, {0, 45})[12], 0, 1e-6);
  EXPECT_NEAR(hillshade(to_south, n, n, 1, {90, 30})[12], 0.5 * std::sqrt(0.5), 1e-6);
}

TEST(CrsTitle, NameAndCode) {
  EXPECT_EQ(crs_title(""), "");
  EXPECT_EQ(crs_title(R"(LOCAL_CS["somewhere"])"), "somewhere");
  EXPECT_EQ(
      crs_title(
          R"(PROJCS["SWEREF99 TM",GEOGCS["SWEREF99",AUTHORITY["EPSG","4619"]],AUTHORITY["EPSG","3006"]])"),
      "SWEREF99 TM (EPSG:3006)");
  EXPECT_EQ(
      crs_title(R"(PROJCRS["WGS 84 / UTM zone 33N",BASEGEOGCRS["WGS 84",ID["EPSG",4326]],ID["EPSG",32633]])"),
      "WGS 84 / UTM zone 33N (EPSG:32633)");
}

// Cells with a value keep its hue over the lightness of the basemap; where there is none, and on roofs, the basemap is seen.
TEST(MapPicture, IsDrawnOverABasemap) {
  const std::vector<float> values = {0, 0, std::numeric_limits<float>::quiet_NaN(), 0};
  const std::vector<uint8_t> cover = {0, 1, 0, 0};
  Image under(4, 4, 3);
  for (size_t k = 0; k < under.pixels.size(); k += 3) under.pixels[k] = 200;  // lightness 59.8
  MapPictureOptions options;
  options.classes = {{0, "sun", {100, 50, 10}}, {1, "shade", {0, 0, 0}}};
  options.cover = &cover;
  options.covers = {{"roof", {9, 9, 9}}};
  options.under = &under;
  options.pixel_size = 0;
  options.target_pixels = 8;
  const Image image = draw_map(values, 2, 2, options);
  const auto count = [&](const Rgb& ink) {
    int64_t found = 0;
    for (size_t k = 0; k < image.pixels.size(); k += 3)
      found += std::equal(ink.begin(), ink.end(), image.pixels.begin() + static_cast<ptrdiff_t>(k));
    return found;
  };
  EXPECT_EQ(count({200, 0, 0}), 2 * 4 * 4) << "the roof, and the cell without a value";
  EXPECT_EQ(count({88, 53, 25}), 2 * 4 * 4) << "seven parts of the class, three of the lightness";
  EXPECT_EQ(shown_labels(values, 2, 2, options), std::vector<std::string>{"sun"});
}

}  // namespace
