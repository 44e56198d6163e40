// Shapes that formulas may name: `gaussian(t) + linear(t)` stands for their formulas of t.
//
// A shape's parameters have its own names, after a prefix where one is given: gaussian(t, p_) has p_amplitude, p_center and
// p_sigma. Names and formulas are those of lmfit's models.
#pragma once

#include <span>
#include <string_view>

namespace lockstep::solve {

struct LineShape {
  std::string_view name;
  std::string_view formula;  // over x and the parameters
};
std::span<const LineShape> line_shapes();

}  // namespace lockstep::solve
