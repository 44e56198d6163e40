// The format of sketches: what is read, and what is refused with its line.
#include <gtest/gtest.h>

#include <random>

#include "lockstep/error.hpp"
#include "solve/sketch/sketch.hpp"

namespace lockstep::solve::sketch {
namespace {

const std::string kText = R"(name = "a \"small\" sketch"

[points]
o = { at = [0, 0], pinned = true }
p = [1.5, -2]
"q r" = [3, 4]

[lines]
l = ["o", "p"]
"l'" = ["p", "q r"]

[circles]
c = { center = "p", radius = 0.5 }

[arcs]
bow = { center = "o", start = "p", end = "q r" }

[[constraints]]
name = "width"
kind = "length"
of = ["l"]
value = 2

[[constraints]]
kind = "circles_tangent"
of = ["c", "bow"]
inside = true
)";

TEST(SketchFormat, Reads) {
  const Sketch s = parse_sketch(kText, "a.toml");
  EXPECT_EQ(s.name, "a \"small\" sketch");
  ASSERT_EQ(s.points.size(), 3u);
  EXPECT_TRUE(s.points[0].pinned);
  EXPECT_EQ(s.points[1].y, -2);
  EXPECT_EQ(s.points[2].name, "q r");
  ASSERT_EQ(s.lines.size(), 2u);
  EXPECT_EQ(s.lines[1].b, 2);
  ASSERT_EQ(s.circles.size(), 2u);
  EXPECT_FALSE(s.circles[0].is_arc());
  EXPECT_TRUE(s.circles[1].is_arc());
  EXPECT_DOUBLE_EQ(s.circles[1].radius, 0.5 * (2.5 + 5));
  ASSERT_EQ(s.constraints.size(), 4u);
  EXPECT_TRUE(s.constraints[0].implied);
  EXPECT_EQ(s.constraints[0].name, "bow start");
  EXPECT_EQ(s.constraints[2].name, "width");
  EXPECT_EQ(s.constraints[2].value, 2);
  EXPECT_EQ(s.constraints[3].name, "circles_tangent 2");
  EXPECT_TRUE(s.constraints[3].inside);
}

TEST(SketchFormat, WritesWhatItReads) {
  const std::string text = format_sketch(parse_sketch(kText, "a.toml"));
  EXPECT_EQ(format_sketch(parse_sketch(text, "b.toml")), text);
  const Sketch again = parse_sketch(text, "b.toml");
  EXPECT_EQ(again.name, "a \"small\" sketch");
  EXPECT_EQ(again.lines[1].name, "l'");
  EXPECT_EQ(again.constraints[3].name, "circles_tangent 2");
}

std::string refusal(const std::string& text) {
  try {
    parse_sketch(text, "s.toml");
  } catch (const InputError& error) { return error.what(); }
  return "accepted";
}

TEST(SketchFormat, RefusesWithTheLine) {
  const std::string points = "[points]\na = [0, 0]\nb = [1, 0]\nc = [0, 1]\n";
  const std::string lines = points + "[lines]\nab = ['a', 'b']\n";
  EXPECT_EQ(refusal(""), "no points [s.toml:1]: expected a table [points]");
  EXPECT_EQ(refusal("[points]\na = [0]"), "1 coordinates of 'a' [s.toml:2]: expected [x, y]");
  EXPECT_EQ(refusal("[points]\na = [0, nan]"), "the number nan [s.toml:2]: expected a finite one");
  EXPECT_EQ(refusal("[points]\na = { pinned = true }"), "'a' has no at [s.toml:2]: expected at = …");
  EXPECT_EQ(refusal("[points]\na = { at = [0, 0], colour = 1 }"),
            "unknown key 'colour' [s.toml:2]: expected one of at, pinned");
  EXPECT_EQ(refusal("size = 2\n" + points),
            "unknown key 'size' [s.toml:1]: expected one of name, points, lines, circles, arcs, constraints");
  EXPECT_EQ(refusal(points + "[lines]\nl = ['a', 'd']"),
            "unknown entity 'd' [s.toml:6]: expected a point, line, circle or arc of the sketch");
  EXPECT_EQ(refusal(points + "[lines]\nl = ['a', 'a']"),
            "both ends of 'l' are one point [s.toml:6]: expected two different points");
  EXPECT_EQ(refusal(points + "[lines]\na = ['a', 'b']"),
            "'a' is repeated [s.toml:6]: expected one name for each point, line, circle and arc");
  EXPECT_EQ(refusal(points + "[circles]\nk = { center = 'a', radius = -1 }"),
            "radius -1 of 'k' [s.toml:6]: expected above 0");
  EXPECT_EQ(refusal(lines + "[circles]\nk = { center = 'ab', radius = 1 }"),
            "'ab' is not a point [s.toml:8]: expected a point");
  EXPECT_EQ(refusal(points + "[arcs]\nk = { center = 'a', start = 'b', end = 'b' }"),
            "'k' names a point twice [s.toml:6]: expected three different points");
  EXPECT_EQ(refusal(lines + "[[constraints]]\nof = ['ab']"),
            "'constraint 1' has no kind [s.toml:7]: expected kind = …");
  EXPECT_NE(
      refusal(lines + "[[constraints]]\nkind = 'fixed'\nof = ['ab']").find("unknown kind 'fixed' [s.toml:8]"),
      std::string::npos);
  EXPECT_EQ(refusal(lines + "[[constraints]]\nkind = 'horizontal'\nof = ['a']"),
            "the entities of 'horizontal 1' [s.toml:9]: expected a line or two points for horizontal");
  EXPECT_EQ(refusal(lines + "[[constraints]]\nkind = 'equal_length'\nof = ['ab']"),
            "the entities of 'equal_length 1' [s.toml:9]: expected two or more lines for equal_length");
  EXPECT_EQ(refusal(lines + "[[constraints]]\nkind = 'horizontal'\nof = ['a', 'a']"),
            "'horizontal 1' names 'a' twice [s.toml:9]: expected different entities");
  EXPECT_EQ(refusal(lines + "[[constraints]]\nkind = 'length'\nof = ['ab']"),
            "'length 1' has no value [s.toml:7]: expected value = …");
  EXPECT_EQ(refusal(lines + "[[constraints]]\nkind = 'length'\nof = ['ab']\nvalue = 0"),
            "the value 0 of 'length 1' [s.toml:10]: expected above 0");
  EXPECT_EQ(refusal(lines + "[[constraints]]\nkind = 'vertical'\nof = ['ab']\nvalue = 3"),
            "'value' of a constraint vertical [s.toml:10]: expected kind, of and name");
  const std::string one = "[[constraints]]\nname = 'x'\nkind = 'vertical'\nof = ['ab']\n";
  EXPECT_EQ(refusal(lines + one + one), "constraint 'x' is repeated [s.toml:11]: expected different names");
}

TEST(SketchFormat, MutatedTextsAreReadOrRefused) {
  std::mt19937 random(1);
  const std::string alphabet = "abl[]{}='\",.0159-\n #_";
  int refused = 0;
  for (int trial = 0; trial < 100000; ++trial) {
    std::string text = kText;
    for (int edits = 1 + int(random() % 3); edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = alphabet[random() % alphabet.size()]; break;
        case 1: text.erase(at, 1 + random() % 8); break;
        default: text.insert(at, 1, alphabet[random() % alphabet.size()]);
      }
    }
    try {
      const Sketch sketch = parse_sketch(text, "fuzz");
      EXPECT_EQ(format_sketch(parse_sketch(format_sketch(sketch), "again")), format_sketch(sketch));
    } catch (const InputError&) { ++refused; }
  }
  EXPECT_GT(refused, 25000);
  EXPECT_LT(refused, 100000);
}

}  // namespace
}  // namespace lockstep::solve::sketch
