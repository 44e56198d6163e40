// Every kind of constraint: its value where it is violated, its gradient, and the solved sketch.
#include "solve/sketch/constraints.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include "solve/sketch/solve_sketch.hpp"
#include "solve/sketch/system.hpp"

namespace lockstep::solve::sketch {
namespace {

struct Xy {
  double x, y;
};
Xy operator-(Xy a, Xy b) { return {a.x - b.x, a.y - b.y}; }
double cross(Xy a, Xy b) { return a.x * b.y - a.y * b.x; }
double dot(Xy a, Xy b) { return a.x * b.x + a.y * b.y; }
double length(Xy a) { return std::hypot(a.x, a.y); }

// A sketch as the predicates see it.
struct View {
  const Sketch& sketch;
  Xy p(const char* name) const {
    for (const SketchPoint& point : sketch.points)
      if (point.name == name) return {point.x, point.y};
    ADD_FAILURE() << name;
    return {};
  }
  double r(const char* name) const {
    for (const SketchCircle& circle : sketch.circles)
      if (circle.name == name) return circle.radius;
    ADD_FAILURE() << name;
    return 0;
  }
  double line_distance(const char* point, const char* a, const char* b) const {
    return cross(p(b) - p(a), p(point) - p(a)) / length(p(b) - p(a));
  }
};

// Points a … h, lines ab, cd, ef, circles k (around g) and m (around h): none in a special place.
const std::string kScene = R"([points]
a = [0.1, 0.2]
b = [3.0, 1.1]
c = [0.7, 2.0]
d = [3.9, 3.1]
e = [4.4, 0.3]
f = [5.6, 2.2]
g = [1.5, 4.6]
h = [4.2, 5.3]
[lines]
ab = ["a", "b"]
cd = ["c", "d"]
ef = ["e", "f"]
gc = ["g", "c"]
[circles]
k = { center = "g", radius = 1.1 }
m = { center = "h", radius = 0.8 }
)";

struct KindCase {
  const char* constraint;
  // Violation in the sketch's unit or radians, as the residual should be at the start.
  std::function<std::vector<double>(const View&)> value;
};

double angle_between(Xy u, Xy v) { return std::atan2(cross(u, v), dot(u, v)); }

std::vector<KindCase> line_cases() {
  using V = const View&;
  using R = std::vector<double>;
  return {
      {"kind = 'length'\nof = ['ab']\nvalue = 2.5",
       [](V v) -> R { return {length(v.p("b") - v.p("a")) - 2.5}; }},
      {"kind = 'length'\nof = ['a', 'd']\nvalue = 2.5",
       [](V v) -> R { return {length(v.p("d") - v.p("a")) - 2.5}; }},
      {"kind = 'horizontal'\nof = ['ab']", [](V v) -> R { return {v.p("b").y - v.p("a").y}; }},
      {"kind = 'horizontal'\nof = ['c', 'f']", [](V v) -> R { return {v.p("f").y - v.p("c").y}; }},
      {"kind = 'vertical'\nof = ['ef']", [](V v) -> R { return {v.p("f").x - v.p("e").x}; }},
      {"kind = 'coincident'\nof = ['b', 'e']",
       [](V v) -> R { return {v.p("e").x - v.p("b").x, v.p("e").y - v.p("b").y}; }},
      {"kind = 'midpoint'\nof = ['e', 'cd']",
       [](V v) -> R {
         return {v.p("e").x - (v.p("c").x + v.p("d").x) / 2, v.p("e").y - (v.p("c").y + v.p("d").y) / 2};
       }},
      {"kind = 'midpoint'\nof = ['g', 'a', 'h']",
       [](V v) -> R {
         return {v.p("g").x - (v.p("a").x + v.p("h").x) / 2, v.p("g").y - (v.p("a").y + v.p("h").y) / 2};
       }},
      {"kind = 'collinear'\nof = ['ab', 'cd']",
       [](V v) -> R {
         return {angle_between(v.p("b") - v.p("a"), v.p("d") - v.p("c")), v.line_distance("c", "a", "b")};
       }},
      {"kind = 'parallel'\nof = ['ab', 'ef']",
       [](V v) -> R { return {angle_between(v.p("b") - v.p("a"), v.p("f") - v.p("e"))}; }},
      {"kind = 'parallel'\nof = ['ab', 'gc']",
       [](V v) -> R { return {angle_between(v.p("a") - v.p("b"), v.p("c") - v.p("g"))}; }},
      {"kind = 'perpendicular'\nof = ['ef', 'ab']",
       [](V v) -> R {
         return {angle_between(v.p("f") - v.p("e"), v.p("b") - v.p("a")) + std::numbers::pi / 2};
       }},
      {"kind = 'perpendicular'\nof = ['ab', 'ef']",
       [](V v) -> R {
         return {angle_between(v.p("b") - v.p("a"), v.p("f") - v.p("e")) - std::numbers::pi / 2};
       }},
      {"kind = 'angle'\nof = ['ab', 'ef']\nvalue = 30",
       [](V v) -> R {
         return {angle_between(v.p("b") - v.p("a"), v.p("f") - v.p("e")) - std::numbers::pi / 6};
       }},
      {"kind = 'angle'\nof = ['ef', 'ab']\nvalue = -120",
       [](V v) -> R {
         return {angle_between(v.p("f") - v.p("e"), v.p("b") - v.p("a")) + 2 * std::numbers::pi / 3};
       }},
      {"kind = 'point_on_line'\nof = ['h', 'ab']", [](V v) -> R { return {v.line_distance("h", "a", "b")}; }},
      {"kind = 'distance'\nof = ['h', 'ab']\nvalue = 1.5",
       [](V v) -> R { return {std::abs(v.line_distance("h", "a", "b")) - 1.5}; }},
      {"kind = 'distance'\nof = ['e', 'cd']\nvalue = 0.5",
       [](V v) -> R { return {std::abs(v.line_distance("e", "c", "d")) - 0.5}; }},
  };
}

std::vector<KindCase> other_cases() {
  using V = const View&;
  using R = std::vector<double>;
  return {
      {"kind = 'point_on_circle'\nof = ['d', 'k']",
       [](V v) -> R { return {length(v.p("d") - v.p("g")) - v.r("k")}; }},
      {"kind = 'tangent'\nof = ['cd', 'k']",
       [](V v) -> R { return {std::abs(v.line_distance("g", "c", "d")) - v.r("k")}; }},
      {"kind = 'tangent'\nof = ['ef', 'm']",
       [](V v) -> R { return {std::abs(v.line_distance("h", "e", "f")) - v.r("m")}; }},
      {"kind = 'radial'\nof = ['ab', 'm']", [](V v) -> R { return {v.line_distance("h", "a", "b")}; }},
      {"kind = 'radial'\nof = ['a', 'c', 'm']", [](V v) -> R { return {v.line_distance("h", "a", "c")}; }},
      {"kind = 'equal_length'\nof = ['ab', 'cd', 'ef']",
       [](V v) -> R {
         const double first = length(v.p("b") - v.p("a"));
         return {length(v.p("d") - v.p("c")) - first, length(v.p("f") - v.p("e")) - first};
       }},
      {"kind = 'equal_radius'\nof = ['k', 'm']", [](V v) -> R { return {v.r("m") - v.r("k")}; }},
      {"kind = 'circles_tangent'\nof = ['k', 'm']",
       [](V v) -> R { return {length(v.p("h") - v.p("g")) - (v.r("k") + v.r("m"))}; }},
      {"kind = 'circles_tangent'\nof = ['k', 'm']\ninside = true",
       [](V v) -> R { return {length(v.p("h") - v.p("g")) - std::abs(v.r("k") - v.r("m"))}; }},
      {"kind = 'circles_tangent'\nof = ['m', 'k']\ninside = true",
       [](V v) -> R { return {length(v.p("h") - v.p("g")) - std::abs(v.r("k") - v.r("m"))}; }},
      {"kind = 'concentric'\nof = ['k', 'm']",
       [](V v) -> R { return {v.p("h").x - v.p("g").x, v.p("h").y - v.p("g").y}; }},
      {"kind = 'symmetry'\nof = ['a', 'h', 'cd']",
       [](V v) -> R {
         const Xy u = v.p("d") - v.p("c"), a = v.p("a"), h = v.p("h");
         const Xy middle{(a.x + h.x) / 2, (a.y + h.y) / 2};
         return {dot(u, h - a) / length(u), cross(u, middle - v.p("c")) / length(u)};
       }},
      {"kind = 'radius'\nof = ['m']\nvalue = 1.4", [](V v) -> R { return {v.r("m") - 1.4}; }},
  };
}

std::vector<KindCase> kind_cases() {
  std::vector<KindCase> all = line_cases();
  for (KindCase& c : other_cases()) all.push_back(std::move(c));
  return all;
}

bool in_angles(ConstraintKind kind, size_t row) {
  return kind == ConstraintKind::parallel || kind == ConstraintKind::perpendicular ||
         kind == ConstraintKind::angle || (kind == ConstraintKind::collinear && row == 0);
}

TEST(SketchConstraints, EveryKindIsTested) {
  std::vector<int> seen(size_t(ConstraintKind::count_), 0);
  for (const KindCase& k : kind_cases()) {
    const Sketch sketch = parse_sketch(kScene + "[[constraints]]\n" + k.constraint, "scene");
    ++seen[size_t(sketch.constraints.at(0).kind)];
  }
  for (size_t kind = 0; kind < seen.size(); ++kind)
    EXPECT_GT(seen[kind], 0) << kind_info(ConstraintKind(kind)).name;
}

TEST(SketchConstraints, ValuesAreTheirFormulas) {
  for (const KindCase& k : kind_cases()) {
    const Sketch sketch = parse_sketch(kScene + "[[constraints]]\n" + k.constraint, "scene");
    const ConstraintSystem system(sketch);
    const std::vector<double> residuals = system.residuals(coordinates_of(sketch, system.size()));
    const std::vector<double> expected = k.value({sketch});
    ASSERT_EQ(residuals.size(), expected.size()) << k.constraint;
    for (size_t row = 0; row < expected.size(); ++row) {
      const double unit = in_angles(sketch.constraints[0].kind, row) ? 1 : system.size();
      EXPECT_NEAR(residuals[row] * unit, expected[row], 1e-13) << k.constraint;
      EXPECT_GT(std::abs(expected[row]), 1e-3) << k.constraint << ": the scene violates it";
    }
  }
}

TEST(SketchConstraints, GradientsAgreeWithComplexSteps) {
  std::mt19937 random(9);
  std::uniform_real_distribution<double> share(-1, 1);
  for (int kind = 0; kind < int(ConstraintKind::count_); ++kind) {
    const TermType type = constraint_term(ConstraintKind(kind));
    autodiff::Tape graph;
    std::vector<std::vector<Value>> blocks;
    for (const int slot : type.slots) {
      blocks.emplace_back();
      for (int c = 0; c < slot; ++c) blocks.back().push_back(graph.variable("x"));
    }
    std::vector<Value> data;
    for (int c = 0; c < type.data; ++c) data.push_back(graph.parameter("d"));
    const std::vector<Value> residuals = type.residual(TermArguments(graph, blocks, data));
    for (int trial = 0; trial < 10; ++trial) {
      std::vector<double> at(graph.leaf_count());
      for (double& x : at) x = share(random);
      for (const Value& residual : residuals) {
        const auto check = autodiff::check_gradient(residual, at);
        EXPECT_LT(check.max_error, 1e-12) << type.name;
        EXPECT_LT(check.forward_error, 1e-12) << type.name;
      }
    }
  }
}

TEST(SketchConstraints, JacobiansAgreeWithDifferences) {
  std::string text = kScene;
  for (const KindCase& k : kind_cases()) text += std::string("[[constraints]]\n") + k.constraint + "\n";
  Sketch sketch = parse_sketch(text, "scene");
  sketch.points[0].pinned = true;
  const ConstraintSystem system(sketch);
  EXPECT_EQ(system.columns(), 2 * 7 + 2);
  const Coordinates at = coordinates_of(sketch, system.size());
  const std::vector<double> jacobian = system.jacobian(at);
  const double step = 1e-6;
  for (int32_t number = 0; number < 18; ++number) {
    const bool radius = number >= 16;
    const int64_t column = radius ? system.radius_column(number - 16)
                           : system.point_column(number / 2) < 0
                               ? -1
                               : system.point_column(number / 2) + number % 2;
    if (column < 0) continue;
    Coordinates low = at, high = at;
    (radius ? low.radii[size_t(number - 16)] : low.points[size_t(number)]) -= step;
    (radius ? high.radii[size_t(number - 16)] : high.points[size_t(number)]) += step;
    const std::vector<double> below = system.residuals(low), above = system.residuals(high);
    for (size_t row = 0; row < below.size(); ++row)
      EXPECT_NEAR(jacobian[row * size_t(system.columns()) + size_t(column)],
                  (above[row] - below[row]) / (2 * step), 1e-8);
  }
}

TEST(SketchConstraints, EverySolvedSketchMeetsItsConstraint) {
  Context context({.device = "cpu"});
  for (const KindCase& k : kind_cases()) {
    const Sketch sketch = parse_sketch(kScene + "[[constraints]]\n" + k.constraint, "scene");
    const SketchResult result = solve_sketch(sketch, context);
    EXPECT_TRUE(result.satisfied) << k.constraint;
    EXPECT_TRUE(result.conflicts.empty()) << k.constraint;
    const std::vector<double> violation = k.value({result.sketch});
    for (const double v : violation) EXPECT_NEAR(v, 0, 1e-8) << k.constraint;
    EXPECT_EQ(result.freedom.degrees_of_freedom(), 18 - int64_t(violation.size())) << k.constraint;
    for (const SketchCircle& c : result.sketch.circles) EXPECT_GT(c.radius, 0);
  }
}

TEST(SketchConstraints, PinnedPointsKeepTheirBits) {
  Context context({.device = "cpu"});
  std::string text = kScene + "[[constraints]]\nkind = 'length'\nof = ['ab']\nvalue = 2.5";
  Sketch sketch = parse_sketch(text, "scene");
  sketch.points[0].pinned = true;
  const SketchResult result = solve_sketch(sketch, context);
  EXPECT_TRUE(result.satisfied);
  EXPECT_EQ(result.sketch.points[0].x, 0.1);
  EXPECT_EQ(result.sketch.points[0].y, 0.2);
  const View v{result.sketch};
  EXPECT_NEAR(length(v.p("b") - v.p("a")), 2.5, 1e-9);
  // Along the line: the least change that does it, but for the damping.
  EXPECT_NEAR(cross(v.p("b") - v.p("a"), Xy{2.9, 0.9}), 0, 1e-4);
}

TEST(SketchConstraints, ArcsKeepTheirEndsOnTheCircle) {
  Context context({.device = "cpu"});
  const SketchResult result = solve_sketch(parse_sketch(R"([points]
o = { at = [0, 0], pinned = true }
s = [1.2, 0.1]
e = [0.2, 0.7]
[arcs]
bow = { center = "o", start = "s", end = "e" }
[[constraints]]
kind = "radius"
of = ["bow"]
value = 2
)",
                                                        "arc"),
                                           context);
  EXPECT_TRUE(result.satisfied);
  const View v{result.sketch};
  EXPECT_NEAR(length(v.p("s")), 2, 1e-9);
  EXPECT_NEAR(length(v.p("e")), 2, 1e-9);
  EXPECT_EQ(result.freedom.degrees_of_freedom(), 2);
}

// Where curves touch in a point they share, the distance form would have a double root: its Jacobian would
// lose a rank, and every digit would cost an iteration.
TEST(SketchConstraints, CurvesMayTouchAtACommonEnd) {
  Context context({.device = "cpu"});
  const SketchResult result = solve_sketch(parse_sketch(R"([points]
a = { at = [0, 0], pinned = true }
b = { at = [4, 0], pinned = true }
c = [4.2, 1.1]
d = [5.1, 1.4]
e = [6.4, 1.2]
f = [7.5, 0.4]
[lines]
ab = ["a", "b"]
[arcs]
first = { center = "c", start = "b", end = "d" }
second = { center = "e", start = "f", end = "d" }
[[constraints]]
kind = "tangent"
of = ["ab", "first"]
[[constraints]]
kind = "circles_tangent"
of = ["first", "second"]
[[constraints]]
kind = "radius"
of = ["first"]
value = 1
[[constraints]]
kind = "radius"
of = ["second"]
value = 2
[[constraints]]
kind = "horizontal"
of = ["c", "d"]
[[constraints]]
kind = "vertical"
of = ["e", "f"]
)",
                                                        "arcs"),
                                           context);
  EXPECT_TRUE(result.satisfied);
  EXPECT_EQ(result.freedom.degrees_of_freedom(), 0);
  EXPECT_TRUE(result.freedom.redundant.empty());
  EXPECT_LT(result.summary.iterations, 20);
  const View v{result.sketch};
  EXPECT_NEAR(v.p("c").x, 4, 1e-8);
  EXPECT_NEAR(v.p("c").y, 1, 1e-8);
  EXPECT_NEAR(v.p("d").x, 5, 1e-8);
  EXPECT_NEAR(v.p("e").y, 1, 1e-8) << "centres and the common end lie on one line";
  EXPECT_NEAR(length(v.p("d") - v.p("e")), 2, 1e-8);
}

}  // namespace
}  // namespace lockstep::solve::sketch
