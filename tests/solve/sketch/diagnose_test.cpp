// Degrees of freedom, redundant and contradicting constraints, and the drawing.
#include "solve/sketch/diagnose.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "lockstep/error.hpp"
#include "solve/sketch/draw_sketch.hpp"
#include "solve/sketch/solve_sketch.hpp"

namespace lockstep::solve::sketch {
namespace {

const std::string kTriangle = R"(
[points]
a = { at = [0, 0], pinned = true }
b = [4, 0.3]
c = [2, 3]
[lines]
ab = ["a", "b"]
bc = ["b", "c"]
ca = ["c", "a"]
)";

std::string constraint(const std::string& name, const std::string& kind, const std::string& of,
                       const std::string& value = {}) {
  return "[[constraints]]\nname = '" + name + "'\nkind = '" + kind + "'\nof = " + of + "\n" +
         (value.empty() ? "" : "value = " + value + "\n");
}

SketchResult solved(const std::string& text) {
  Context context({.device = "cpu"});
  return solve_sketch(parse_sketch(text, "test.toml"), context);
}

std::vector<std::string> names(const SketchResult& result, const std::vector<int32_t>& set) {
  std::vector<std::string> out;
  for (const int32_t c : set) out.push_back(result.sketch.constraints[size_t(c)].name);
  return out;
}
using Names = std::vector<std::string>;

// Two points in one place have no direction in which their distance would grow: only a nearby start finds one.
TEST(SketchSolved, TheSummaryIsOfTheStartThatWorked) {
  const SketchResult result = solved("[points]\na = { at = [1, 2], pinned = true }\nb = [1, 2]\n" +
                                     constraint("apart", "length", "['a', 'b']", "3"));
  EXPECT_TRUE(result.satisfied);
  EXPECT_TRUE(result.conflicts.empty());
  EXPECT_LT(result.summary.final_cost, 1e-16);
  EXPECT_GT(result.summary.iterations, 0);
  EXPECT_EQ(int(result.summary.trace.size()), result.summary.iterations);
}

TEST(SketchSolved, RefusesWhatCannotSatisfy) {
  Context context({.device = "cpu"});
  const Sketch sketch = parse_sketch(kTriangle + constraint("width", "length", "['ab']", "4"), "test.toml");
  for (const Method method : {Method::sgd, Method::adam, Method::adamw}) {
    Options options;
    options.method = method;
    EXPECT_THROW(solve_sketch(sketch, context, options), InputError);
  }
  Options options;
  options.damping = Damping::identity;
  EXPECT_THROW(solve_sketch(sketch, context, options), InputError);
}

TEST(SketchFreedom, CountsWhatMayMove) {
  std::string text = kTriangle;
  EXPECT_EQ(solved(text).freedom.degrees_of_freedom(), 4) << "nothing to solve";
  text += constraint("width", "length", "['ab']", "4");
  EXPECT_EQ(solved(text).freedom.degrees_of_freedom(), 3);
  text += constraint("level", "horizontal", "['ab']");
  SketchResult result = solved(text);
  EXPECT_EQ(result.freedom.degrees_of_freedom(), 2);
  EXPECT_EQ(result.freedom.point_determined, (std::vector<uint8_t>{1, 1, 0}));
  text += constraint("left", "length", "['ca']", "3");
  text += constraint("right", "length", "['bc']", "3.5");
  result = solved(text);
  EXPECT_TRUE(result.satisfied);
  EXPECT_EQ(result.freedom.degrees_of_freedom(), 0);
  EXPECT_EQ(result.freedom.point_determined, (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_TRUE(result.freedom.redundant.empty());
  // Heron gives the height of the triangle with sides 4, 3 and 3.5.
  const double s = 5.25, area = std::sqrt(s * (s - 4) * (s - 3) * (s - 3.5));
  EXPECT_NEAR(result.sketch.points[2].y, 2 * area / 4, 1e-9);
}

TEST(SketchFreedom, NamesRedundantConstraintsAndTheirSources) {
  const SketchResult result = solved(
      kTriangle + constraint("level", "horizontal", "['ab']") + constraint("upright", "vertical", "['bc']") +
      constraint("square", "perpendicular", "['ab', 'bc']") + constraint("width", "length", "['ab']", "4"));
  EXPECT_TRUE(result.satisfied);
  ASSERT_EQ(result.freedom.redundant.size(), 1u);
  const Redundancy& r = result.freedom.redundant[0];
  EXPECT_EQ(names(result, {r.constraint}), (Names{"square"}));
  EXPECT_EQ(r.rows, 1);
  EXPECT_EQ(r.redundant_rows, 1);
  EXPECT_EQ(names(result, r.follows_from), (Names{"level", "upright"}));
  EXPECT_EQ(result.freedom.degrees_of_freedom(), 1);
}

TEST(SketchConflicts, ASmallestSetIsNamed) {
  const SketchResult result = solved(
      kTriangle + constraint("level", "horizontal", "['ab']") + constraint("width", "length", "['ab']", "4") +
      constraint("left", "length", "['ca']", "1") + constraint("right", "length", "['bc']", "2"));
  EXPECT_FALSE(result.satisfied);
  ASSERT_EQ(result.conflicts.size(), 1u);
  EXPECT_EQ(names(result, result.conflicts[0]), (Names{"width", "left", "right"}))
      << "the triangle inequality";
}

TEST(SketchConflicts, SeveralAreFound) {
  const SketchResult result =
      solved(kTriangle + constraint("width", "length", "['ab']", "4") +
             constraint("short", "length", "['a', 'b']", "3") + constraint("upright", "vertical", "['bc']") +
             constraint("level", "horizontal", "['bc']") + constraint("side", "length", "['bc']", "2"));
  EXPECT_FALSE(result.satisfied);
  ASSERT_EQ(result.conflicts.size(), 2u);
  std::vector<Names> sets{names(result, result.conflicts[0]), names(result, result.conflicts[1])};
  std::sort(sets.begin(), sets.end());
  EXPECT_EQ(sets[0], (Names{"upright", "level", "side"}));
  EXPECT_EQ(sets[1], (Names{"width", "short"}));
}

TEST(SketchConflicts, PinnedPointsMayContradictAloneAndAllMayBePinned) {
  const std::string pinned = R"(
[points]
a = { at = [0, 0], pinned = true }
b = { at = [4, 0], pinned = true }
)";
  EXPECT_TRUE(solved(pinned + constraint("level", "horizontal", "['a', 'b']")).satisfied);
  const SketchResult result = solved(pinned + constraint("level", "horizontal", "['a', 'b']") +
                                     constraint("width", "length", "['a', 'b']", "5"));
  EXPECT_FALSE(result.satisfied);
  ASSERT_EQ(result.conflicts.size(), 1u);
  EXPECT_EQ(names(result, result.conflicts[0]), (Names{"width"}));
}

// Tolerances are of what the constraints span, not of other points or of a start far away.
TEST(SketchConflicts, PointsFarAwayHideNone) {
  const std::string base =
      constraint("level", "horizontal", "['o', 'p']") + constraint("first", "length", "['o', 'p']", "40");
  const std::string points =
      "[points]\nfar = { at = [6.58e6, 0], pinned = true }\no = { at = [0, 0], pinned = true }\np = [40, "
      "0]\n";
  EXPECT_TRUE(solved(points + base).satisfied);
  EXPECT_FALSE(solved(points + base + constraint("second", "length", "['o', 'p']", "40.08")).satisfied);
  for (const char* start : {"1e8", "1e15"}) {
    const SketchResult result =
        solved(std::string("[points]\no = { at = [0, 0], pinned = true }\np = [") + start + ", 3]\n" + base);
    EXPECT_TRUE(result.satisfied);
    EXPECT_NEAR(result.sketch.points[1].x, 40, 1e-6) << start;
  }
}

// From this start the triangle's tip lies on the base line, where no first-order step leaves it.
TEST(SketchConflicts, StartsWithoutADescentDirectionAreNoConflicts) {
  std::string text = kTriangle;
  text.replace(text.find("[4, 0.3]"), 8, "[4, 0.0]");
  text.replace(text.find("[2, 3]"), 6, "[2, 0]");
  const SketchResult result = solved(
      text + constraint("level", "horizontal", "['ab']") + constraint("width", "length", "['ab']", "4") +
      constraint("left", "length", "['ca']", "3") + constraint("right", "length", "['bc']", "3"));
  EXPECT_TRUE(result.satisfied);
  EXPECT_NEAR(std::abs(result.sketch.points[2].y), std::sqrt(5.0), 1e-8);
}

bool numbers_are_finite(const std::string& svg) {
  for (const char* wrong : {"\"nan", "\"-nan", " nan", " -nan", "inf\"", "inf "})
    if (svg.find(wrong) != std::string::npos) return false;
  return true;
}

TEST(SketchDrawing, ColoursDimensionsAndMarks) {
  const std::string svg = draw_sketch(solved(kTriangle + constraint("width <&>", "length", "['ab']", "4") +
                                             constraint("level", "horizontal", "['ab']")))
                              .svg();
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find(">4</text>"), std::string::npos) << "the dimension";
  EXPECT_NE(svg.find(">H</text>"), std::string::npos) << "the mark";
  EXPECT_NE(svg.find("2 degrees of freedom"), std::string::npos);
  EXPECT_TRUE(numbers_are_finite(svg));
  const std::string contradictory = draw_sketch(solved(kTriangle + constraint("w", "length", "['ab']", "4") +
                                                       constraint("v", "length", "['ab']", "3")))
                                        .svg();
  EXPECT_NE(contradictory.find("contradictory"), std::string::npos);
  EXPECT_NE(contradictory.find("#d03030"), std::string::npos);
}

TEST(SketchExamples, AreFullyConstrainedAndComeBackFromTheirText) {
  int count = 0;
  Context context({.device = "cpu"});
  for (const auto& entry : std::filesystem::directory_iterator(LOCKSTEP_SKETCHES)) {
    if (entry.path().extension() != ".toml") continue;
    ++count;
    const SketchResult result = solve_sketch(read_sketch(entry.path()), context);
    EXPECT_TRUE(result.satisfied) << entry.path();
    EXPECT_EQ(result.freedom.degrees_of_freedom(), 0) << entry.path();
    EXPECT_TRUE(result.freedom.redundant.empty()) << entry.path();
    const std::string text = format_sketch(result.sketch);
    const Sketch again = parse_sketch(text, "again");
    EXPECT_EQ(format_sketch(again), text);
    const SketchResult same = solve_sketch(again, context);
    EXPECT_TRUE(same.satisfied);
    EXPECT_LE(same.summary.iterations, 2) << "solved already";
    EXPECT_TRUE(numbers_are_finite(draw_sketch(result).svg()));
  }
  EXPECT_GE(count, 2);
}

}  // namespace
}  // namespace lockstep::solve::sketch
