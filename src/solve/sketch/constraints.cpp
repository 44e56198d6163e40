#include "solve/sketch/constraints.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "lockstep/error.hpp"

namespace lockstep::solve::sketch {
namespace {

using autodiff::Vec2;

Vec2 direction(const TermArguments& a, int from, int to) { return safe_normalize(a.vec2(to) - a.vec2(from)); }
Value span(const TermArguments& a, int from, int to) { return safe_norm(a.vec2(to) - a.vec2(from)); }

// From the line (0, 1) to (2, 3), less the angle whose cosine and sine are the first data.
Value angle_missing(const TermArguments& a) {
  const Vec2 u = direction(a, 0, 1), v = direction(a, 2, 3);
  const Value c = dot(u, v), s = cross(u, v);
  return safe_atan2(s * a.data(0) - c * a.data(1), c * a.data(0) + s * a.data(1));
}

std::vector<int> slots_of(int points, int radii) {
  std::vector<int> slots(size_t(points), 2);
  slots.resize(size_t(points + radii), 1);
  return slots;
}

struct Equations {
  int points, radii, data;
  std::vector<Value> (*residual)(const TermArguments&);
};

// Where curves touch in a point that both are held to.
Equations equations_at_end(ConstraintKind kind) {
  using A = const TermArguments&;
  using R = std::vector<Value>;
  if (kind == ConstraintKind::tangent)
    return {3, 0, 0, [](A a) -> R { return {dot(direction(a, 0, 1), a.vec2(2) - a.vec2(0))}; }};
  return {3, 0, 0, [](A a) -> R { return {cross(direction(a, 2, 0), direction(a, 2, 1))}; }};
}

Equations equations_of(ConstraintKind kind) {
  using A = const TermArguments&;
  using R = std::vector<Value>;
  switch (kind) {
    case ConstraintKind::length: return {2, 0, 1, [](A a) -> R { return {span(a, 0, 1) - a.data(0)}; }};
    case ConstraintKind::horizontal: return {2, 0, 0, [](A a) -> R { return {a.x(1, 1) - a.x(0, 1)}; }};
    case ConstraintKind::vertical: return {2, 0, 0, [](A a) -> R { return {a.x(1, 0) - a.x(0, 0)}; }};
    case ConstraintKind::coincident:
    case ConstraintKind::concentric:
      return {2, 0, 0, [](A a) -> R { return {a.x(1, 0) - a.x(0, 0), a.x(1, 1) - a.x(0, 1)}; }};
    case ConstraintKind::midpoint:
      return {3, 0, 0, [](A a) -> R {
                const Vec2 d = a.vec2(0) - (a.vec2(1) + a.vec2(2)) * 0.5;
                return {d[0], d[1]};
              }};
    case ConstraintKind::collinear:
      return {4, 0, 2,
              [](A a) -> R { return {angle_missing(a), cross(direction(a, 0, 1), a.vec2(2) - a.vec2(0))}; }};
    case ConstraintKind::parallel:
    case ConstraintKind::perpendicular:
    case ConstraintKind::angle: return {4, 0, 2, [](A a) -> R { return {angle_missing(a)}; }};
    case ConstraintKind::point_on_line:
      return {3, 0, 0, [](A a) -> R { return {cross(direction(a, 1, 2), a.vec2(0) - a.vec2(1))}; }};
    case ConstraintKind::distance:
      return {3, 0, 2, [](A a) -> R {
                return {a.data(0) * cross(direction(a, 1, 2), a.vec2(0) - a.vec2(1)) - a.data(1)};
              }};
    case ConstraintKind::point_on_circle: return {2, 1, 0, [](A a) -> R { return {span(a, 0, 1) - a.x(2)}; }};
    case ConstraintKind::tangent:
      return {3, 1, 1, [](A a) -> R {
                return {a.data(0) * cross(direction(a, 0, 1), a.vec2(2) - a.vec2(0)) - a.x(3)};
              }};
    case ConstraintKind::radial:
      return {3, 0, 0, [](A a) -> R { return {cross(direction(a, 0, 1), a.vec2(2) - a.vec2(0))}; }};
    case ConstraintKind::equal_length:
      return {4, 0, 0, [](A a) -> R { return {span(a, 2, 3) - span(a, 0, 1)}; }};
    case ConstraintKind::equal_radius: return {0, 2, 0, [](A a) -> R { return {a.x(1) - a.x(0)}; }};
    case ConstraintKind::circles_tangent:
      return {2, 2, 2, [](A a) -> R { return {span(a, 0, 1) - (a.data(0) * a.x(2) + a.data(1) * a.x(3))}; }};
    case ConstraintKind::symmetry:
      return {4, 0, 0, [](A a) -> R {
                const Vec2 u = direction(a, 2, 3), middle = (a.vec2(0) + a.vec2(1)) * 0.5;
                return {dot(u, a.vec2(1) - a.vec2(0)), cross(u, middle - a.vec2(2))};
              }};
    case ConstraintKind::radius: return {0, 1, 1, [](A a) -> R { return {a.x(0) - a.data(0)}; }};
    case ConstraintKind::count_: break;
  }
  throw InternalError(fmt::format("constraint kind {}", int(kind)), "sketch constraint_term",
                      "one of the enum");
}

// Cross product of the line's direction with the way to p: positive where p lies on the left.
double side_of(const Sketch& sketch, int32_t a, int32_t b, int32_t p) {
  const SketchPoint &s = sketch.points[size_t(a)], &e = sketch.points[size_t(b)],
                    &q = sketch.points[size_t(p)];
  return (e.x - s.x) * (q.y - s.y) - (e.y - s.y) * (q.x - s.x) < 0 ? -1 : 1;
}

double sign(double x) { return x < 0 ? -1 : 1; }

struct Pair {
  double ux, uy, vx, vy;
};
// Directions of the lines (0, 1) and (2, 3).
Pair directions(const Sketch& sketch, const std::vector<int32_t>& points) {
  const auto at = [&](size_t n) -> const SketchPoint& { return sketch.points[size_t(points[n])]; };
  return {at(1).x - at(0).x, at(1).y - at(0).y, at(3).x - at(2).x, at(3).y - at(2).y};
}
double dot_of(const Sketch& sketch, const std::vector<int32_t>& points) {
  const Pair p = directions(sketch, points);
  return p.ux * p.vx + p.uy * p.vy;
}
double cross_of(const Sketch& sketch, const std::vector<int32_t>& points) {
  const Pair p = directions(sketch, points);
  return p.ux * p.vy - p.uy * p.vx;
}

// Whether the sketch holds the point to the circle.
bool on_circle(const Sketch& sketch, int32_t point, int32_t circle) {
  const SketchCircle& c = sketch.circles[size_t(circle)];
  if (c.is_arc() && (c.start == point || c.end == point)) return true;
  for (const SketchConstraint& constraint : sketch.constraints) {
    if (constraint.kind == ConstraintKind::point_on_circle && constraint.of[0].index == point &&
        constraint.of[1].index == circle)
      return true;
  }
  return false;
}

// A point that the sketch holds to both circles, or -1.
int32_t shared_end(const Sketch& sketch, int32_t first, int32_t second) {
  for (int32_t p = 0; p < int32_t(sketch.points.size()); ++p)
    if (on_circle(sketch, p, first) && on_circle(sketch, p, second)) return p;
  return -1;
}

}  // namespace

TermType constraint_term(ConstraintKind kind, bool at_end) {
  const Equations equations = at_end ? equations_at_end(kind) : equations_of(kind);
  return {fmt::format("sketch.{}{}", kind_info(kind).name, at_end ? ".at_end" : ""),
          slots_of(equations.points, equations.radii), equations.data, equations.residual};
}

std::vector<ConstraintInstance> constraint_instances(const Sketch& sketch, double size) {
  std::vector<ConstraintInstance> instances;
  for (size_t k = 0; k < sketch.constraints.size(); ++k) {
    const SketchConstraint& c = sketch.constraints[k];
    std::vector<int32_t> points, circles;
    for (const EntityRef& ref : c.of) {
      if (ref.kind == 'p') points.push_back(ref.index);
      if (ref.kind == 'l') {
        points.push_back(sketch.lines[size_t(ref.index)].a);
        points.push_back(sketch.lines[size_t(ref.index)].b);
      }
      if (ref.kind == 'c') circles.push_back(ref.index);
    }
    const auto center = [&](size_t n) { return sketch.circles[size_t(circles[n])].center; };
    const auto add = [&](std::vector<int32_t> p, std::vector<int32_t> r, std::vector<double> data = {}) {
      instances.push_back({c.kind, false, int32_t(k), std::move(p), std::move(r), std::move(data)});
    };
    const auto add_at_end = [&](std::vector<int32_t> p) {
      instances.push_back({c.kind, true, int32_t(k), std::move(p), {}, {}});
    };
    switch (c.kind) {
      case ConstraintKind::length: add(points, {}, {c.value / size}); break;
      case ConstraintKind::angle: {
        const double radians = c.value * std::numbers::pi / 180;
        add(points, {}, {std::cos(radians), std::sin(radians)});
        break;
      }
      case ConstraintKind::parallel:
      case ConstraintKind::collinear: add(points, {}, {sign(dot_of(sketch, points)), 0}); break;
      case ConstraintKind::perpendicular: add(points, {}, {0, sign(cross_of(sketch, points))}); break;
      case ConstraintKind::distance:
        add(points, {}, {side_of(sketch, points[1], points[2], points[0]), c.value / size});
        break;
      case ConstraintKind::point_on_circle: add({points[0], center(0)}, circles); break;
      case ConstraintKind::tangent:
        if (on_circle(sketch, points[0], circles[0])) {
          add_at_end({points[0], points[1], center(0)});
          break;
        }
        if (on_circle(sketch, points[1], circles[0])) {
          add_at_end({points[1], points[0], center(0)});
          break;
        }
        add({points[0], points[1], center(0)}, circles, {side_of(sketch, points[0], points[1], center(0))});
        break;
      case ConstraintKind::radial: add({points[0], points[1], center(0)}, {}); break;
      case ConstraintKind::equal_length:
        for (size_t n = 2; n + 1 < points.size(); n += 2)
          add({points[0], points[1], points[n], points[n + 1]}, {});
        break;
      case ConstraintKind::equal_radius:
        for (size_t n = 1; n < circles.size(); ++n) add({}, {circles[0], circles[n]});
        break;
      case ConstraintKind::circles_tangent: {
        if (const int32_t shared = shared_end(sketch, circles[0], circles[1]); shared >= 0) {
          add_at_end({center(0), center(1), shared});
          break;
        }
        const double larger =
            sketch.circles[size_t(circles[0])].radius >= sketch.circles[size_t(circles[1])].radius ? 1 : -1;
        add({center(0), center(1)}, circles, c.inside ? std::vector{larger, -larger} : std::vector{1.0, 1.0});
        break;
      }
      case ConstraintKind::concentric: add({center(0), center(1)}, {}); break;
      case ConstraintKind::radius: add({}, circles, {c.value / size}); break;
      default: add(points, {});
    }
  }
  return instances;
}

}  // namespace lockstep::solve::sketch
