// Line plots: curves stand where their numbers say.
#include "io/pictures/plot.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;

// Mean row of the coloured pixels of a column; -1 where there are none.
double curve_at(Image& image, int x) {
  double sum = 0;
  int count = 0;
  for (int y = 0; y < image.height; ++y) {
    const uint8_t* p = image.at(x, y);
    if (std::max({p[0], p[1], p[2]}) - std::min({p[0], p[1], p[2]}) < 60) continue;
    sum += y;
    ++count;
  }
  return count ? sum / count : -1;
}

TEST(Plot, PowersAreStraightOnALogarithmicAxis) {
  PlotSeries s;
  for (int k = 0; k <= 20; ++k) {
    s.x.push_back(k);
    s.y.push_back(std::pow(10, -k));
  }
  PlotOptions options;
  options.log_y = true;
  options.title = "straight";
  Image image = draw_plot({&s, 1}, options);
  ASSERT_EQ(image.width, options.width);
  const double a = curve_at(image, 300), b = curve_at(image, 500), c = curve_at(image, 700);
  ASSERT_GT(a, 0);
  EXPECT_LT(a, b);
  EXPECT_NEAR(b - a, c - b, 2);
  options.log_y = false;
  Image linear = draw_plot({&s, 1}, options);
  EXPECT_NEAR(curve_at(linear, 300), curve_at(linear, 700), 2);
}

TEST(Plot, LegendsCoverNoData) {
  const auto coloured = [](const uint8_t* p) {
    return std::max({p[0], p[1], p[2]}) - std::min({p[0], p[1], p[2]}) >= 60;
  };
  PlotSeries rising{"a series with a long name", {}, {}}, falling{"", {}, {}};
  for (int k = 0; k <= 40; ++k) {
    rising.x.push_back(k), rising.y.push_back(k);
    falling.x.push_back(k), falling.y.push_back(40 - k);
  }
  for (const PlotSeries& named : {rising, falling}) {
    PlotSeries with = named, without = named;
    with.name = "a series with a long name", without.name = "";
    Image a = draw_plot({&with, 1}, {}), b = draw_plot({&without, 1}, {});
    int more = 0;
    for (int y = 0; y < a.height; ++y)
      for (int x = 0; x < a.width; ++x) {
        if (coloured(b.at(x, y))) { EXPECT_TRUE(coloured(a.at(x, y))) << x << " " << y; }
        more += coloured(a.at(x, y)) && !coloured(b.at(x, y));
      }
    EXPECT_GT(more, 20) << "the stroke of the legend";
  }
  // Points everywhere: the frame makes room.
  PlotSeries cloud{"cloud", {}, {}, false, true};
  for (int x = 0; x <= 60; ++x)
    for (int y = 0; y <= 40; ++y) cloud.x.push_back(x), cloud.y.push_back(y);
  Image above = draw_plot({&cloud, 1}, {});
  int first = above.height;
  for (int y = above.height - 1; y >= 0; --y)
    for (int x = 0; x < above.width / 2; ++x)
      if (coloured(above.at(x, y))) first = y;
  cloud.name = "";
  Image plain = draw_plot({&cloud, 1}, {});
  int first_plain = plain.height;
  for (int y = plain.height - 1; y >= 0; --y)
    for (int x = 0; x < plain.width / 2; ++x)
      if (coloured(plain.at(x, y))) first_plain = y;
  EXPECT_GT(first, first_plain + 10);
}

TEST(Plot, ValuesThatHaveNoPlaceBreakTheLine) {
  PlotSeries s{"", {0, 1, 2, 3, 4}, {1, 10, 0, 10, 1}};
  PlotOptions options;
  options.log_y = true;
  s.marker = false;
  Image image = draw_plot({&s, 1}, options);
  int columns = 0, middle = 0;
  for (int x = 100; x < image.width - 30; ++x) {
    const bool drawn = curve_at(image, x) > 0;
    columns += drawn;
    middle += drawn && std::abs(x - image.width / 2 - 20) < 60;
  }
  EXPECT_GT(columns, 200);
  EXPECT_EQ(middle, 0);
  s.y = {NAN, INFINITY, NAN, NAN, -1};
  EXPECT_NO_THROW(draw_plot({&s, 1}, options));
  EXPECT_NO_THROW(draw_plot({}, options));
  s.y.pop_back();
  EXPECT_THROW(draw_plot({&s, 1}, options), InternalError);
}

TEST(Plot, StackedPicturesKeepTheirPixels) {
  const Image a(4, 2, 3, 7), b(3, 5, 3, 9);
  const Image parts[] = {a, b};
  Image whole = stack_images(parts);
  EXPECT_EQ(whole.width, 4);
  EXPECT_EQ(whole.height, 7);
  EXPECT_EQ(*whole.at(3, 1), 7);
  EXPECT_EQ(*whole.at(2, 6), 9);
  EXPECT_EQ(*whole.at(3, 6), 255);
}

}  // namespace
