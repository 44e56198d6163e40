// A sketch: points, lines, circles, arcs, and the constraints between them, in the plane.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::solve::sketch {

struct SketchPoint {
  std::string name;
  double x = 0, y = 0;
  bool pinned = false;
};
struct SketchLine {
  std::string name;
  int32_t a = -1, b = -1;  // points
};
/// A circle, or an arc counter-clockwise from `start` to `end` where these are points.
struct SketchCircle {
  std::string name;
  int32_t center = -1;
  double radius = 1;
  int32_t start = -1, end = -1;
  bool is_arc() const { return start >= 0; }
};

enum class ConstraintKind : uint8_t {
  length,           // of a line, or between two points
  horizontal,       // line, or two points
  vertical,         // line, or two points
  coincident,       // two points
  midpoint,         // point, line
  collinear,        // two lines
  parallel,         // two lines
  perpendicular,    // two lines
  angle,            // two lines: counter-clockwise from the first to the second, degrees
  point_on_line,    // point, line
  distance,         // point, line
  point_on_circle,  // point, circle
  tangent,          // line, circle
  radial,           // line (or two points), circle: the line runs through the centre
  equal_length,     // lines
  equal_radius,     // circles
  circles_tangent,  // two circles
  concentric,       // two circles
  symmetry,         // two points, line
  radius,           // circle
  count_
};

/// Names an entity: 'p' a point, 'l' a line, 'c' a circle or an arc.
struct EntityRef {
  char kind = 'p';
  int32_t index = -1;
};

struct SketchConstraint {
  std::string name;
  ConstraintKind kind = ConstraintKind::length;
  std::vector<EntityRef> of;
  double value = 0;      // length, distance and radius; degrees of angle
  bool inside = false;   // circles_tangent: one circle within the other
  bool implied = false;  // not in the file: the ends of an arc lie on it
};

struct Sketch {
  std::string name;
  std::vector<SketchPoint> points;
  std::vector<SketchLine> lines;
  std::vector<SketchCircle> circles;
  std::vector<SketchConstraint> constraints;  // implied ones first
};

/// A kind of constraint: its entities and its value.
struct KindInfo {
  std::string_view name;
  std::string_view entities;  // alternatives between |, letters as in EntityRef, a final + for one or more
  std::string_view expected;  // in words
  bool value;
};
const KindInfo& kind_info(ConstraintKind kind);
std::string entity_name(const Sketch& sketch, const EntityRef& ref);

/// The format is described in docs/sketch.md. Throws InputError that names `where`, the line and the mistake.
Sketch parse_sketch(std::string_view text, std::string_view where);
Sketch read_sketch(const std::filesystem::path& path);
/// The same sketch in the same format, numbers with all their digits.
std::string format_sketch(const Sketch& sketch);

/// Whether its value is a length: not an angle.
bool gives_length(const SketchConstraint& constraint);
/// Size of what the constraints span, for tolerances: the larger of the diagonal of its bounding box and the
/// longest given length; 1 without extent.
double sketch_size(const Sketch& sketch);

}  // namespace lockstep::solve::sketch
