// Line plots: curves are at the places of their values.
#include "io/pictures/plot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

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
  Image image = draw_plot({&s, 1}, options).image();
  ASSERT_EQ(image.width, options.width);
  const double a = curve_at(image, 300), b = curve_at(image, 500), c = curve_at(image, 700);
  ASSERT_GT(a, 0);
  EXPECT_LT(a, b);
  EXPECT_NEAR(b - a, c - b, 2);
  options.log_y = false;
  Image linear = draw_plot({&s, 1}, options).image();
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
    Image a = draw_plot({&with, 1}, {}).image(), b = draw_plot({&without, 1}, {}).image();
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
  cloud.name = "a cloud with a name so long that the frame would lose half of its width beside it";
  Image above = draw_plot({&cloud, 1}, {}).image();
  int first = above.height;
  for (int y = above.height - 1; y >= 0; --y)
    for (int x = 0; x < 300; ++x)
      if (coloured(above.at(x, y))) first = y;
  cloud.name = "";
  Image plain = draw_plot({&cloud, 1}, {}).image();
  int first_plain = plain.height;
  for (int y = plain.height - 1; y >= 0; --y)
    for (int x = 0; x < 300; ++x)
      if (coloured(plain.at(x, y))) first_plain = y;
  EXPECT_GT(first, first_plain + 10);
}

TEST(Plot, ValuesThatHaveNoPlaceBreakTheLine) {
  PlotSeries s{"", {0, 1, 2, 3, 4}, {1, 10, 0, 10, 1}};
  PlotOptions options;
  options.log_y = true;
  s.marker = false;
  Image image = draw_plot({&s, 1}, options).image();
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

TEST(Plot, NumbersOfAnySizeEnd) {
  constexpr double kMost = std::numeric_limits<double>::max(),
                   kLeast = std::numeric_limits<double>::denorm_min();
  const PlotSeries curves[] = {{"", {0, 1, 2, 3}, {1e17, 1e17 + 16, 1e17 + 32, 1e17 + 16}},
                               {"", {-1e300, 0, 1e300}, {1, 2, 3}},
                               {"", {-kMost, 0, 1, 2, kMost}, {1, 2, 1, 2, 3}},
                               {"", {0, kLeast, 2 * kLeast}, {1, 2, 3}},
                               {"", {1, 2, 3}, {1e300, 1e300, 1e300}}};
  for (const PlotSeries& s : curves)
    for (const bool logarithmic : {false, true}) {
      PlotOptions options;
      options.log_x = options.log_y = logarithmic;
      const Image image = draw_plot({&s, 1}, options).image();
      EXPECT_GT(image.width, 0) << s.y[0];
    }
}

// All words are inside the picture, and none overlaps another.
void expect_no_collision(const Drawing& drawing, const std::string& what) {
  const std::vector<Box> boxes = drawing.text_boxes();
  for (size_t k = 0; k < boxes.size(); ++k) {
    EXPECT_GE(boxes[k].left, 0) << what;
    EXPECT_GE(boxes[k].top, 0) << what;
    EXPECT_LE(boxes[k].right, drawing.width()) << what;
    EXPECT_LE(boxes[k].bottom, drawing.height()) << what;
    for (size_t n = 0; n < k; ++n)
      EXPECT_FALSE(boxes[k].overlaps(boxes[n])) << what << ": words " << n << " and " << k;
  }
}

TEST(Plot, LabelsNeverCollide) {
  const std::vector<std::vector<double>> ranges = {{0, 1},
                                                   {-3e-7, 4e-7},
                                                   {1e6, 1.000001e6},
                                                   {1e-12, 1e9},
                                                   {12, 16, 24, 25, 26, 27, 640},
                                                   {-123456.5, 123456.5},
                                                   {5}};
  for (const int width : {260, 400, 960})
    for (const int height : {200, 480})
      for (const bool log_x : {false, true})
        for (const bool log_y : {false, true})
          for (const auto& range : ranges)
            for (const size_t count : {1, 3, 12}) {
              std::vector<PlotSeries> series;
              for (size_t k = 0; k < count; ++k) {
                PlotSeries& s = series.emplace_back();
                s.name = count == 1 ? "" : "series " + std::to_string(k);
                s.x = range;
                for (const double v : range) s.y.push_back(v * double(k + 1));
              }
              PlotOptions options;
              options.width = width;
              options.height = height;
              options.log_x = log_x;
              options.log_y = log_y;
              options.title = "A title of some length, longer than a narrow plot is wide";
              options.x_label = "the label of x, with its unit";
              options.y_label = "the label of y, which may be long, with its unit";
              if (range.size() > 2) options.x_ticks = range;
              expect_no_collision(draw_plot(series, options), std::to_string(width) + "x" +
                                                                  std::to_string(height) + " from " +
                                                                  std::to_string(range.front()) + ", " +
                                                                  std::to_string(count) + " series");
            }
}

TEST(Plot, BarsAreAsLongAsTheirValues) {
  const Drawing bars =
      draw_bars({{"a stage with a long name", 2.0}, {"half", 1.0}, {"none", 0.0}}, "Time", "s");
  expect_no_collision(bars, "bars");
  Image image = bars.image();
  const Rgb ink = series_ink(0);
  std::vector<int> lengths;
  for (int y = 0; y < image.height; ++y) {
    int n = 0;
    for (int x = 0; x < image.width; ++x) n += std::equal(ink.begin(), ink.end(), image.at(x, y));
    if (n > 0 && (lengths.empty() || lengths.back() != n)) lengths.push_back(n);
  }
  EXPECT_EQ(lengths, (std::vector<int>{420, 210, 1}));
  EXPECT_NO_THROW(draw_bars({}, "", "s").image());
}

TEST(Plot, StackedDrawingsStandBelowEachOther) {
  Drawing a(40, 20), b(30, 50);
  a.rectangle({0, 0, 4, 4}, {0, 0, 0});
  b.rectangle({0, 0, 4, 4}, {0, 0, 0});
  const Drawing parts[] = {a, b};
  const Drawing whole = stack(parts);
  EXPECT_EQ(whole.width(), 40);
  EXPECT_EQ(whole.height(), 70);
  Image image = whole.image();
  EXPECT_EQ(*image.at(3, 3), 0);
  EXPECT_EQ(*image.at(3, 10), 255);
  EXPECT_EQ(*image.at(3, 23), 0);
}

}  // namespace
