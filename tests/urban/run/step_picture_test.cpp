// Maps of the outputs of `urban run`: classes of stress in their colours, states of shade, missing pixels.
#include "urban/pictures/step_picture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "io/pictures/drawing.hpp"
#include "lockstep/error.hpp"
#include "urban/pictures/stress_clock.hpp"

namespace lockstep::urban {
namespace {

int64_t count(io::Image& image, const io::Rgb& ink) {
  int64_t found = 0;
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) found += std::equal(ink.begin(), ink.end(), image.at(x, y));
  return found;
}

constexpr int kSide = 4, kZoom = 40;  // 16 pixels of 40 x 40

io::Image draw(std::string_view output, std::vector<float> values,
               const std::vector<uint8_t>* ground = nullptr) {
  values.resize(kSide * kSide, values.back());
  StepPicture picture;
  picture.output = output;
  picture.values = &values;
  picture.rows = picture.cols = kSide;
  picture.pixel_size_m = 2;
  picture.target_pixels = kSide * kZoom;
  picture.ground = ground;
  picture.facts.date = "2015-06-21 15:00 (UTC+2)";
  picture.facts.north_is_up = true;
  picture.facts.sun = io::MapSun{230, 50};
  return draw_step_picture(picture);
}

TEST(StepPicture, ShowsIndicesInTheirClasses) {
  for (const auto& [index, output] : {std::pair{ComfortIndex::utci, "utci"}, {ComfortIndex::pet, "pet"}}) {
    const auto classes = stress_classes(index);
    const auto inks = stress_map_classes(index);
    ASSERT_EQ(classes.size(), inks.size());
    std::vector<float> values;
    for (const StressClass& c : classes) {
      const bool last = &c == &classes.back();
      values.push_back(static_cast<float>(last ? classes[classes.size() - 2].upper_c + 5 : c.upper_c - 0.5));
    }
    values.push_back(std::numeric_limits<float>::quiet_NaN());
    io::Image image = draw(output, values);
    for (const io::MapClass& c : inks) {
      const int64_t pixels = count(image, c.ink), swatch = 18 * 18;
      EXPECT_GE(pixels, kZoom * kZoom) << c.label;
      EXPECT_LE(pixels, kZoom * kZoom + swatch) << c.label;
    }
  }
  const auto labels = stress_map_classes(ComfortIndex::utci);
  EXPECT_EQ(labels.front().label, "below −40, extreme cold stress");
  EXPECT_EQ(labels[5].label, "9 to 26, no thermal stress");
  EXPECT_EQ(labels.back().label, "above 46, extreme heat stress");
}

// A hot roof neither shows nor stretches the colours of the ground; it has its own swatch.
TEST(StepPicture, HidesWhereNobodyStands) {
  std::vector<uint8_t> ground(kSide * kSide, 1);
  ground[5] = 0;
  std::vector<float> mild = {20, 22, 24, 26, 28, 30, 32}, hot = mild;
  hot[5] = 90;
  for (const char* output : {"tmrt", "utci"}) {
    io::Image picture = draw(output, hot, &ground);
    EXPECT_EQ(picture.pixels, draw(output, mild, &ground).pixels) << output;
    EXPECT_NE(picture.pixels, draw(output, hot).pixels) << output;
    constexpr io::Rgb hidden = {236, 236, 232};
    EXPECT_GE(count(picture, hidden), kZoom * kZoom + 16 * 16) << output;
  }
  std::vector<float> gap = mild;
  gap[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(draw("tmrt", gap, &ground).pixels, draw("tmrt", gap).pixels) << "a missing pixel is no roof";
}

// Neighbouring classes differ clearly in lightness or hue, so that a map can be read against its legend.
TEST(StepPicture, NeighbouringClassesAreApart) {
  for (const ComfortIndex index : {ComfortIndex::utci, ComfortIndex::pet}) {
    const auto inks = stress_map_classes(index);
    for (size_t k = 1; k < inks.size(); ++k) {
      int apart = 0;
      for (size_t c = 0; c < 3; ++c) apart += std::abs(inks[k].ink[c] - inks[k - 1].ink[c]);
      EXPECT_GE(apart, 90) << inks[k].label;
    }
  }
}

TEST(StepPicture, ShadeHasThreeStates) {
  io::Image image = draw("shadow", {1, 0, 0.03f, 0.5f, 1});
  const Look look = step_look("shadow");
  ASSERT_EQ(look.classes.size(), 3u);
  for (const io::MapClass& c : look.classes) EXPECT_GE(count(image, c.ink), kZoom * kZoom) << c.label;
}

// Frames of one film: the size does not change with the values, and given ends fix the colours.
TEST(StepPicture, FramesHaveOneSize) {
  const io::Image a = draw("utci", {20}), b = draw("utci", {-30, 45});
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.height, b.height);
  EXPECT_GT(a.width, kSide * kZoom + 150) << "a legend stands beside the map";
}

TEST(StepPicture, EveryOutputHasALook) {
  for (const char* output :
       {"tmrt", "utci", "pet", "shadow", "kdown", "kup", "kside", "ldown", "lup", "lside", "gvf"})
    EXPECT_FALSE(step_look(output).title.empty()) << output;
  EXPECT_THROW(step_look("temperature"), InputError);
}

std::string hex(const io::Rgb& ink) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text = "#";
  for (const uint8_t part : ink) text += {kDigits[part >> 4], kDigits[part & 15]};
  return text;
}
size_t occurrences(const std::string& text, const std::string& of) {
  size_t found = 0;
  for (size_t at = text.find(of); at != text.npos; at = text.find(of, at + 1)) ++found;
  return found;
}

TEST(StressClock, ColoursTheHoursOfEachPoint) {
  std::vector<std::vector<std::string>> rows = {{"id", "time", "Ta", "UTCI"}};
  for (int hour = 1; hour <= 24; ++hour)  // interval ends: the last is the midnight of the next day
    for (const char* id : {"square", "park"})
      rows.push_back({id,
                      hour < 24
                          ? "2015-06-21T" + std::string(hour < 10 ? "0" : "") + std::to_string(hour) + ":00"
                          : "2015-06-22T00:00",
                      "20",
                      hour == 5                  ? ""
                      : hour >= 12 && hour <= 15 ? "40.5"
                                                 : "20"});
  const auto clocks = stress_clocks(rows);
  ASSERT_EQ(clocks.size(), 2u) << "one a point, UTCI alone";
  const std::string svg = clocks[0].svg();
  const auto inks = stress_map_classes(ComfortIndex::utci);
  EXPECT_EQ(occurrences(svg, hex(inks[8].ink)), 4u + 1u) << "four hours and the swatch";
  EXPECT_EQ(occurrences(svg, hex(inks[5].ink)), 19u + 1u);
  EXPECT_EQ(occurrences(svg, hex(inks[9].ink)), 0u);
  EXPECT_NE(svg.find("very strong heat stress: 4 h"), svg.npos);
  EXPECT_NE(svg.find("no thermal stress: 19 h"), svg.npos);
  EXPECT_NE(svg.find("square"), svg.npos);
  EXPECT_NE(svg.find("2015-06-21"), svg.npos);
  EXPECT_EQ(svg.find("2015-06-22"), svg.npos);
  const auto boxes = clocks[0].text_boxes();
  for (size_t a = 0; a < boxes.size(); ++a)
    for (size_t b = 0; b < a; ++b) EXPECT_FALSE(boxes[a].overlaps(boxes[b])) << a << ' ' << b;
}

TEST(StressClock, OtherTablesHaveNone) {
  EXPECT_TRUE(stress_clocks({}).empty());
  EXPECT_TRUE(stress_clocks({{"id", "time", "utci"}}).empty());
  EXPECT_TRUE(stress_clocks({{"case", "size"}, {"a", "1"}}).empty());
  EXPECT_TRUE(stress_clocks({{"id", "time", "utci"}, {"a", "2015-06-21T12:00", "none"}}).empty());
}

TEST(StressClock, ManyDaysBecomeMeans) {
  std::vector<StressHour> hours;
  for (int day = 10; day < 30; ++day)
    for (int hour = 1; hour <= 24; ++hour)
      hours.push_back({"2015-06-" + std::to_string(day), double(hour), 30});
  const std::string svg = draw_stress_clock("square", ComfortIndex::pet, hours, 1).svg();
  EXPECT_NE(svg.find("means of 20 days"), svg.npos);
  EXPECT_EQ(occurrences(svg, hex(stress_map_classes(ComfortIndex::pet)[6].ink)), 24u + 1u);
}

}  // namespace
}  // namespace lockstep::urban
