#include "solve/sketch/draw_sketch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <utility>
#include <vector>

namespace lockstep::solve::sketch {
namespace {

constexpr double kLongerSide = 760, kMargin = 90, kFontSize = 14, kPointSize = 3.2, kArrow = 8,
                 kDimensionGap = 26, kTextMargin = 24;
constexpr io::Rgb kDetermined = {34, 48, 63}, kFree = {31, 120, 209}, kConflict = {208, 48, 48},
                  kDimension = {110, 122, 136};

using io::Rgb;
using Xy = io::Point;
Xy operator+(Xy a, Xy b) { return {a.x + b.x, a.y + b.y}; }
Xy operator-(Xy a, Xy b) { return {a.x - b.x, a.y - b.y}; }
Xy operator*(Xy a, double s) { return {a.x * s, a.y * s}; }
double length(Xy a) { return std::hypot(a.x, a.y); }
double dot(Xy a, Xy b) { return a.x * b.x + a.y * b.y; }
double cross(Xy a, Xy b) { return a.x * b.y - a.y * b.x; }
Xy unit(Xy a) { return length(a) > 0 ? a * (1 / length(a)) : Xy{1, 0}; }
Xy left_of(Xy a) { return {-a.y, a.x}; }

// Marks of relations that have no number.
const char* mark_of(ConstraintKind kind) {
  switch (kind) {
    case ConstraintKind::horizontal: return "H";
    case ConstraintKind::vertical: return "V";
    case ConstraintKind::parallel: return "∥";
    case ConstraintKind::perpendicular: return "⊥";
    case ConstraintKind::equal_length:
    case ConstraintKind::equal_radius: return "=";
    case ConstraintKind::collinear: return "⋯";
    case ConstraintKind::tangent:
    case ConstraintKind::circles_tangent: return "T";
    case ConstraintKind::radial: return "R";
    case ConstraintKind::symmetry: return "S";
    case ConstraintKind::midpoint: return "M";
    case ConstraintKind::concentric: return "◎";
    default: return "";
  }
}

class Drawing {
 public:
  explicit Drawing(const SketchResult& result) : result_(result), sketch_(result.sketch) {
    double low_x = INFINITY, high_x = -INFINITY, low_y = INFINITY, high_y = -INFINITY;
    const auto cover = [&](Xy p) {
      low_x = std::min(low_x, p.x), high_x = std::max(high_x, p.x);
      low_y = std::min(low_y, p.y), high_y = std::max(high_y, p.y);
    };
    for (const SketchPoint& p : sketch_.points) cover({p.x, p.y});
    for (const SketchCircle& c : sketch_.circles) {
      if (c.is_arc()) continue;
      cover(at(c.center) + Xy{c.radius, c.radius});
      cover(at(c.center) - Xy{c.radius, c.radius});
    }
    const double extent = std::max({high_x - low_x, high_y - low_y, 1e-9 * result.size});
    scale_ = kLongerSide / extent;
    origin_ = {low_x, high_y};
    out_.set_size(std::round((high_x - low_x) * scale_ + 2 * kMargin),
                  std::round((high_y - low_y) * scale_ + 2 * kMargin));
    for (const auto& set : result.conflicts) conflicting_.insert(set.begin(), set.end());
  }

  io::Drawing operator()() {
    for (const SketchLine& line : sketch_.lines) draw_line(line);
    for (size_t c = 0; c < sketch_.circles.size(); ++c) draw_circle(c);
    for (size_t k = 0; k < sketch_.constraints.size(); ++k) draw_constraint(k);
    for (size_t p = 0; p < sketch_.points.size(); ++p) draw_point(p);
    draw_captions();
    return std::move(out_);
  }

 private:
  Xy at(int32_t point) const {
    const SketchPoint& p = sketch_.points[size_t(point)];
    return {p.x, p.y};
  }
  // In the picture: y downwards, in pixels.
  Xy screen(Xy p) const {
    return {(p.x - origin_.x) * scale_ + kMargin, (origin_.y - p.y) * scale_ + kMargin};
  }
  Xy screen(int32_t point) const { return screen(at(point)); }

  const Rgb& color(bool determined) const { return determined ? kDetermined : kFree; }
  const Rgb& constraint_color(size_t k) const {
    return conflicting_.count(int32_t(k)) ? kConflict : kDimension;
  }

  void arrow(Xy tip, Xy direction, const Rgb& ink) {
    const Xy back = tip - direction * kArrow, side = left_of(direction) * (0.32 * kArrow);
    out_.area({tip, back + side, back - side}, ink);
  }
  void label(Xy middle, const std::string& text, const Rgb& ink) {
    out_.text({middle.x, middle.y + 0.5 * io::cap_height(kFontSize)}, text,
              {.size = kFontSize, .ink = ink, .align = io::Align::middle, .halo = true});
  }

  void draw_line(const SketchLine& line) {
    const auto& determined = result_.freedom.point_determined;
    out_.line(screen(line.a), screen(line.b),
              {color(determined[size_t(line.a)] && determined[size_t(line.b)]), 2.2});
  }

  // The angle at which an arc starts, and how far it goes round.
  std::pair<double, double> turn_of(const SketchCircle& arc) const {
    const Xy from = at(arc.start) - at(arc.center), to = at(arc.end) - at(arc.center);
    double sweep = std::atan2(cross(from, to), dot(from, to));
    if (sweep <= 0) sweep += 2 * std::numbers::pi;
    return {std::atan2(from.y, from.x), sweep};
  }

  void draw_circle(size_t index) {
    const SketchCircle& c = sketch_.circles[index];
    const io::Pen pen{color(result_.freedom.circle_determined[index]), 2.2};
    if (!c.is_arc()) return out_.circle(screen(c.center), c.radius * scale_, std::nullopt, pen);
    const auto [from, sweep] = turn_of(c);
    out_.arc(screen(c.center), c.radius * scale_, from, sweep, pen);
  }

  void draw_point(size_t index) {
    const Xy at = screen(int32_t(index));
    if (sketch_.points[index].pinned) {
      out_.rectangle({at.x - 4.5, at.y - 4.5, at.x + 4.5, at.y + 4.5}, kDetermined);
    } else {
      out_.circle(at, kPointSize, io::kPaper, io::Pen{color(result_.freedom.point_determined[index]), 2});
    }
  }

  // A dimension at an offset from the segment a to b.
  void draw_length(Xy a, Xy b, const std::string& text, const Rgb& ink) {
    const Xy along = unit(b - a);
    Xy side = left_of(along) * -1.0;
    // Away from the middle of the drawing.
    const Xy middle{0.5 * out_.width(), 0.5 * out_.height()};
    if (dot((a + b) * 0.5 - middle, side) < 0) side = side * -1.0;
    const Xy offset = side * kDimensionGap, p = a + offset, q = b + offset;
    out_.line(a + side * 6.0, p + side * 5.0, {ink, 0.8});
    out_.line(b + side * 6.0, q + side * 5.0, {ink, 0.8});
    out_.line(p, q, {ink, 1.1});
    if (length(q - p) > 3 * kArrow) {
      arrow(p, along * -1.0, ink);
      arrow(q, along, ink);
    }
    label((p + q) * 0.5 + side * 2.0, text, ink);
  }

  void draw_angle(const SketchConstraint& c, const Rgb& ink) {
    const SketchLine &first = sketch_.lines[size_t(c.of[0].index)],
                     &second = sketch_.lines[size_t(c.of[1].index)];
    const Xy a = at(first.a), u = unit(at(first.b) - a), b = at(second.a), v = unit(at(second.b) - b);
    const double sine = cross(u, v);
    // The intersection of the lines; the first point of the second line where they are parallel.
    const Xy apex = std::abs(sine) > 1e-6 ? a + u * (cross(b - a, v) / sine) : b;
    const double radius = 34, from = std::atan2(u.y, u.x), sweep = c.value * std::numbers::pi / 180;
    out_.arc(screen(apex), radius, from, sweep, {ink, 1.1});
    const double middle = from + 0.5 * sweep;
    label(screen(apex) + Xy{std::cos(middle), -std::sin(middle)} * (radius + 16),
          fmt::format("{:g}°", c.value), ink);
  }

  void draw_radius(const SketchConstraint& c, const Rgb& ink) {
    const SketchCircle& circle = sketch_.circles[size_t(c.of[0].index)];
    double angle = 0.25 * std::numbers::pi;
    if (circle.is_arc()) {
      const auto [from, sweep] = turn_of(circle);
      angle = from + 0.5 * sweep;
    }
    const Xy center = screen(circle.center), out{std::cos(angle), -std::sin(angle)};
    const Xy rim = center + out * (circle.radius * scale_);
    out_.line(center, rim, {ink, 1.1});
    arrow(rim, out, ink);
    label(center + out * (0.55 * circle.radius * scale_), fmt::format("R {:g}", c.value), ink);
  }

  void draw_constraint(size_t k) {
    const SketchConstraint& c = sketch_.constraints[k];
    const Rgb& ink = constraint_color(k);
    switch (c.kind) {
      case ConstraintKind::length: {
        const bool line = c.of[0].kind == 'l';
        const int32_t a = line ? sketch_.lines[size_t(c.of[0].index)].a : c.of[0].index;
        const int32_t b = line ? sketch_.lines[size_t(c.of[0].index)].b : c.of[1].index;
        draw_length(screen(a), screen(b), fmt::format("{:g}", c.value), ink);
        return;
      }
      case ConstraintKind::angle: draw_angle(c, ink); return;
      case ConstraintKind::radius: draw_radius(c, ink); return;
      case ConstraintKind::distance: {
        const SketchLine& line = sketch_.lines[size_t(c.of[1].index)];
        const Xy p = at(c.of[0].index), a = at(line.a), u = unit(at(line.b) - a);
        const Xy foot = a + u * dot(p - a, u);
        out_.line(screen(p), screen(foot), {ink, 1.1});
        label((screen(p) + screen(foot)) * 0.5, fmt::format("{:g}", c.value), ink);
        return;
      }
      default: draw_mark(c, ink);
    }
  }

  // Marks are placed next to the middle of each line or at the rim of each circle, in a row where there are
  // several.
  void draw_mark(const SketchConstraint& c, const Rgb& ink) {
    const std::string mark = mark_of(c.kind);
    if (mark.empty()) return;
    for (const EntityRef& ref : c.of) {
      if (ref.kind == 'l') {
        const SketchLine& line = sketch_.lines[size_t(ref.index)];
        const Xy a = screen(line.a), b = screen(line.b), along = unit(b - a);
        Xy side = left_of(along);
        const Xy middle{0.5 * out_.width(), 0.5 * out_.height()};
        if (dot((a + b) * 0.5 - middle, side) > 0) side = side * -1.0;
        label((a + b) * 0.5 + side * 13.0 + along * (15.0 * double(line_marks_[ref.index]++)), mark, ink);
      } else if (ref.kind == 'c') {
        const SketchCircle& circle = sketch_.circles[size_t(ref.index)];
        const double angle =
            2.4 + 16 * double(circle_marks_[ref.index]++) / std::max(circle.radius * scale_, 16.0);
        label(screen(circle.center) + Xy{std::cos(angle), -std::sin(angle)} * (circle.radius * scale_ + 13),
              mark, ink);
      } else if (c.kind == ConstraintKind::midpoint || c.kind == ConstraintKind::symmetry) {
        label(screen(ref.index) + Xy{12, -12}, mark, ink);
      }
    }
  }

  void draw_captions() {
    const int64_t free = result_.freedom.degrees_of_freedom();
    const std::string state = !result_.conflicts.empty() ? "contradictory"
                              : !result_.satisfied       ? "not satisfied"
                              : free == 0                ? "fully constrained"
                              : free == 1                ? "1 degree of freedom"
                                                         : fmt::format("{} degrees of freedom", free);
    out_.text({kTextMargin, 38}, io::shortened(sketch_.name, out_.width() - 2 * kTextMargin, 20, true),
              {.size = 20, .ink = kDetermined, .bold = true});
    out_.text({kTextMargin, out_.height() - 20}, state,
              {.size = kFontSize,
               .ink = !result_.satisfied ? kConflict
                      : free == 0        ? kDetermined
                                         : kFree});
  }

  const SketchResult& result_;
  const Sketch& sketch_;
  io::Drawing out_{0, 0};
  double scale_ = 1;
  Xy origin_;
  std::set<int32_t> conflicting_;
  std::map<int32_t, int> line_marks_, circle_marks_;
};

}  // namespace

io::Drawing draw_sketch(const SketchResult& result) { return Drawing(result)(); }

}  // namespace lockstep::solve::sketch
