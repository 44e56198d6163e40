// Maps of the outputs of `urban run`: classes of stress in their colours, states of shade, missing pixels.
#include "urban/run/step_picture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "io/pictures/drawing.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

int64_t count(io::Image& image, const io::Rgb& ink) {
  int64_t found = 0;
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) found += std::equal(ink.begin(), ink.end(), image.at(x, y));
  return found;
}

constexpr int kSide = 4, kZoom = 40;  // 16 pixels of 40 x 40

io::Image draw(std::string_view output, std::vector<float> values) {
  values.resize(kSide * kSide, values.back());
  StepPicture picture;
  picture.output = output;
  picture.values = &values;
  picture.rows = picture.cols = kSide;
  picture.pixel_size_m = 2;
  picture.target_pixels = kSide * kZoom;
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

}  // namespace
}  // namespace lockstep::urban
