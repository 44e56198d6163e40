// Constraints as terms. All numbers are in units of the sketch's size.
#pragma once

#include <vector>

#include "lockstep/solve.hpp"
#include "solve/sketch/sketch.hpp"

namespace lockstep::solve::sketch {

/// Slots of two numbers are points, slots of one are radii. Data as written with each kind; `side` is +1 or
/// -1 by the state of the sketch at the start. Unit vectors u of a line that has shrunk to a point are 0.
///   length           (a, b), data L: |b - a| - L
///   horizontal       (a, b): y_b - y_a                  vertical: x_b - x_a
///   coincident       (a, b): b - a                      concentric: the same of the centres
///   midpoint         (p, a, b): p - (a + b) / 2
///   angle            (a, b, c, d), data (cos, sin) of the angle: the angle missing, -pi to pi
///   parallel         as angle, of 0 or 180 degrees, whichever is closer at the start
///   perpendicular    as angle, of 90 or -90 degrees
///   collinear        (a, b, c, d), data as parallel: the angle missing, u_ab x (c - a)
///   point_on_line    (p, a, b): u_ab x (p - a)
///   distance         (p, a, b), data (side, D): side u_ab x (p - a) - D
///   point_on_circle  (p, c, r): |p - c| - r
///   tangent          (a, b, c, r), data side: side u_ab x (c - a) - r; where an end a of the line lies on
///   the
///                    circle (an arc's end, or point_on_circle) that has a double root, and the term is
///                    (a, b, c): u_ab . (c - a)
///   radial           (a, b, c): u_ab x (c - a)
///   equal_length     (a, b, c, d): |d - c| - |b - a|, each line against the first
///   equal_radius     (r, s): s - r, each circle against the first
///   circles_tangent  (c, d, r, s), data (p, q): |d - c| - (p r + q s); p = q = 1 outside, +1 and -1 inside;
///                    for arcs with a common end p (c, d, p): unit(c - p) x unit(d - p)
///   symmetry         (p, q, a, b): u_ab . (q - p), u_ab x ((p + q) / 2 - a)
///   radius           (r), data R: r - R
/// `at_end` requests the second form of tangent and circles_tangent.
TermType constraint_term(ConstraintKind kind, bool at_end = false);

/// One term of a constraint.
struct ConstraintInstance {
  ConstraintKind kind = ConstraintKind::length;
  bool at_end = false;
  int32_t constraint = -1;       // in sketch.constraints
  std::vector<int32_t> points;   // of the first slots
  std::vector<int32_t> circles;  // whose radii fill the slots after them
  std::vector<double> data;
};
/// The terms of every constraint, in their order; lengths divided by `size`.
std::vector<ConstraintInstance> constraint_instances(const Sketch& sketch, double size);

}  // namespace lockstep::solve::sketch
