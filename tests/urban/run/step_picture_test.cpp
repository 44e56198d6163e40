// Maps of the outputs of `urban run`: classes of stress in their colours, states of shade, missing pixels.
#include "urban/pictures/step_picture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "io/pictures/drawing.hpp"
#include "io/series/civil_time.hpp"
#include "lockstep/error.hpp"
#include "urban/pictures/clock.hpp"
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

StepPicture picture_of(std::string_view output, const std::vector<float>& values, const MapBase* base) {
  StepPicture picture;
  picture.output = output;
  picture.values = &values;
  picture.rows = picture.cols = kSide;
  picture.pixel_size_m = 2;
  picture.target_pixels = kSide * kZoom;
  picture.base = base;
  picture.facts.date = "2015-06-21 15:00 (UTC+2)";
  picture.facts.north_is_up = true;
  picture.facts.sun = io::MapSun{230, 50};
  return picture;
}
std::vector<float> filled(std::vector<float> values) {
  values.resize(kSide * kSide, values.back());
  return values;
}
io::Image draw(std::string_view output, const std::vector<float>& values, const MapBase* base = nullptr) {
  const std::vector<float> all = filled(values);
  return draw_step_picture(picture_of(output, all, base));
}
std::vector<std::string> legend(std::string_view output, const std::vector<float>& values,
                                const MapBase* base = nullptr) {
  const std::vector<float> all = filled(values);
  return legend_of(picture_of(output, all, base));
}

constexpr float kNoValue = std::numeric_limits<float>::quiet_NaN();

// All classes at once are more parts than a legend holds: whole classes are shown.
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
    // Further parts of these classes: 12 and more in all.
    for (const float more :
         index == ComfortIndex::utci ? std::array{21.0f, 18.0f, 12.0f} : std::array{36.0f, 30.0f, 24.0f})
      values.push_back(more);
    values.push_back(kNoValue);
    std::vector<std::string> labels;
    for (const io::MapClass& c : inks) labels.insert(labels.begin(), c.label);
    labels.push_back("no data");
    EXPECT_EQ(legend(output, values), labels);
    io::Image image = draw(output, values);
    for (const io::MapClass& c : inks) EXPECT_GE(count(image, c.ink), kZoom * kZoom) << c.label;
  }
  const auto labels = stress_map_classes(ComfortIndex::utci);
  EXPECT_EQ(labels.front().label, "below −40, extreme cold stress");
  EXPECT_EQ(labels[5].label, "9 to 26, no thermal stress");
  EXPECT_EQ(labels.back().label, "above 46, extreme heat stress");
}

// The legend has the parts that occur and every colour of the map; bounds of classes are bounds of parts.
TEST(StepPicture, LegendHasThePartsThatOccur) {
  const std::vector<float> values = {26, 26.01f, 29, 29.01f, 32, 32.01f, 38, -45};
  EXPECT_EQ(legend("utci", values),
            (std::vector<std::string>{"35 to 38, strong heat stress", "32 to 35, strong heat stress",
                                      "29 to 32, moderate heat stress", "26 to 29, moderate heat stress",
                                      "23 to 26, no thermal stress", "below −40, extreme cold stress"}));
  EXPECT_EQ(legend("utci_mean", {20.5f}), std::vector<std::string>{"20 to 23, no thermal stress"});
  for (const ComfortIndex index : {ComfortIndex::utci, ComfortIndex::pet}) {
    const auto& parts = stress_parts(index);
    for (size_t k = 1; k < parts.size(); ++k) {
      EXPECT_LT(parts[k - 1].upper_c, parts[k].upper_c);
      EXPECT_EQ(size_t(stress_class(index, std::min(parts[k].upper_c, 99.0))), parts[k].of_class);
      EXPECT_NE(parts[k].ink, parts[k - 1].ink) << parts[k].label;
    }
  }
}

// A hot roof neither shows nor stretches the colours of the ground; it has its own swatch.
TEST(StepPicture, HidesWhereNobodyStands) {
  MapBase base;
  base.cover.assign(kSide * kSide, 0);
  base.cover[5] = 1;
  std::vector<float> mild = {20, 22, 24, 26, 28, 30, 32}, hot = mild;
  hot[5] = 90;
  for (const char* output : {"tmrt", "utci"}) {
    io::Image picture = draw(output, hot, &base);
    EXPECT_EQ(picture.pixels, draw(output, mild, &base).pixels) << output;
    EXPECT_NE(picture.pixels, draw(output, hot).pixels) << output;
  }
  EXPECT_EQ(legend("tmrt", hot, &base), std::vector<std::string>{"roof"});
  base.cover[6] = 2;
  base.buildings.assign(kSide * kSide, 0);
  base.buildings[5] = 1;
  EXPECT_EQ(legend("tmrt", hot, &base), (std::vector<std::string>{"roof", "water", "building"}));
  std::vector<float> gap = mild;
  gap[5] = kNoValue;
  EXPECT_EQ(legend("tmrt", gap, &base), (std::vector<std::string>{"water", "no data", "building"}))
      << "a missing pixel is no roof";
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
       {"tmrt", "utci", "pet", "shadow", "kdown", "kup", "kside", "ldown", "lup", "lside", "gvf",
        "lside_west", "kdown_max", "utci_mean", "pet_hours_above_41", "sun_hours", "utci_hours_outside_fit"})
    EXPECT_FALSE(step_look(output).title.empty()) << output;
  for (const char* none : {"temperature", "temperature_mean", "wind_hours_above_3"})
    EXPECT_THROW(step_look(none), InputError) << none;
}

/// Minutes of a civil time.
io::CivilMinutes at(int year, int month, int day, int hour, int minute = 0) {
  return io::civil_minutes({year, month, day, hour, minute});
}

// Changes of 2015 and 2016 as the official tables have them.
TEST(Clock, SummerTimeByPlaceAndDate) {
  const Site paris{48.86, 2.35, 0, 1}, new_york{40.7, -74, 0, -5}, phoenix{33.4, -112, 0, -7},
      tokyo{35.7, 139.7, 0, 9};
  const auto eu = [&](io::CivilMinutes local) { return summer_time(paris, local, {}); };
  EXPECT_EQ(eu(at(2015, 3, 29, 1, 59)), 0);
  EXPECT_EQ(eu(at(2015, 3, 29, 2)), 1);
  EXPECT_EQ(eu(at(2015, 10, 25, 1, 59)), 1);
  EXPECT_EQ(eu(at(2015, 10, 25, 2)), 0);
  EXPECT_EQ(eu(at(2016, 3, 27, 2)), 1);
  const auto us = [&](io::CivilMinutes local) { return summer_time(new_york, local, {}); };
  EXPECT_EQ(us(at(2015, 3, 8, 1, 59)), 0);
  EXPECT_EQ(us(at(2015, 3, 8, 2)), 1);
  EXPECT_EQ(us(at(2015, 11, 1, 0, 59)), 1);
  EXPECT_EQ(us(at(2015, 11, 1, 1)), 0);
  EXPECT_EQ(summer_time(phoenix, at(2015, 7, 1, 12), {}), 0);
  EXPECT_EQ(summer_time(tokyo, at(2015, 7, 1, 12), {}), 0);
  EXPECT_EQ(summer_time(tokyo, at(2015, 7, 1, 12), 1.0), 1);
  // In the boxes of Europe and North America, but on one clock all year.
  for (const Site& site : {Site{41.0, 29.0, 0, 3}, Site{53.9, 27.6, 0, 3}, Site{59.9, 30.3, 0, 3},
                           Site{54.7, 20.5, 0, 2}, Site{36.75, 3.06, 0, 1}, Site{36.8, 10.2, 0, 1},
                           Site{35.77, -5.8, 0, 1}, Site{25.67, -100.3, 0, -6}, Site{60.7, -135.1, 0, -7}})
    EXPECT_EQ(summer_time(site, at(2025, 7, 1, 12), {}), 0) << site.latitude_deg;
  for (const Site& site :
       {Site{36.4, 28.2, 0, 2}, Site{42.5, 27.5, 0, 2}, Site{35.89, -5.32, 0, 1}, Site{35.29, -2.94, 0, 1},
        Site{39.2, 9.1, 0, 1}, Site{25.9, -97.5, 0, -6}, Site{31.8, -106.4, 0, -7}, Site{54.35, 18.65, 0, 1}})
    EXPECT_EQ(summer_time(site, at(2025, 7, 1, 12), {}), 1) << site.latitude_deg;
  EXPECT_EQ(clock_text(paris, at(2015, 6, 21, 15), {}), "2015-06-21 15:00 (UTC+1), 16:00 summer time");
  EXPECT_EQ(clock_text(paris, at(2015, 6, 21, 23, 30), {}),
            "2015-06-21 23:30 (UTC+1), 2015-06-22 00:30 summer time");
  EXPECT_EQ(clock_text(paris, at(2015, 6, 21, 15), 0.0), "2015-06-21 15:00 (UTC+1)");
  EXPECT_EQ(clock_text(paris, at(2015, 1, 21, 15), {}), "2015-01-21 15:00 (UTC+1)");
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

// A bar would have colours that the map has not.
TEST(StepPicture, OneValueHasOneColour) {
  EXPECT_EQ(legend("utci_hours_above_32", {0}), std::vector<std::string>{"0 h everywhere"});
  EXPECT_EQ(legend("kdown", {kNoValue, 812.5f}),
            (std::vector<std::string>{"812.5 W/m² everywhere", "no data"}));
  EXPECT_EQ(legend("utci_hours_above_32", {0, 1}), std::vector<std::string>{});
  MapBase base;
  base.cover = {1};
  base.cover.resize(kSide * kSide);
  EXPECT_EQ(legend("sun_hours", {7, 2}, &base), (std::vector<std::string>{"2 h everywhere", "roof"}));
}

}  // namespace
}  // namespace lockstep::urban
