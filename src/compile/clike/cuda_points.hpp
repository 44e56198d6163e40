// How a points kernel covers its domain: several points per lane where a lane would else hold too few bytes
// in flight, and a path without clamps for lanes whose stencil lies inside.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "compile/clike/points_plan.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::clike {

/// Reach of every clamp_index of the body and every periodic shift: offsets from the lane's coordinate along an axis,
/// and the extent that bounds them. Complete only if every clamp has this form.
struct StencilReach {
  struct Reach {
    int axis;
    ir::Id extent;  // second operand of the clamp
    int64_t low = 0, high = 0;
  };
  std::vector<Reach> reaches;
  bool complete = true;
};
StencilReach stencil_reach(const ir::Function& function);
/// The body for lanes whose stencils lie inside: what a period would carry to the other side stays where it is. (Clamped
/// coordinates keep their form: the printer leaves the clamp away.)
ir::Function inside_form(const ir::Function& function);

/// Bodies of the kernels: coordinates, guards and calls of `point`, and of `inner_point` where `inside` is
/// not empty. `inside` holds per reach the text of the extent.
std::string points_kernel_body(const ir::Function& function, const std::array<int32_t, 3>& block,
                               const PointsPlan& plan, const StencilReach& reach,
                               const std::vector<std::string>& extents);
/// Parameters and arguments of `point`: "const int x, const int y" and "x, y".
std::string point_parameters(const ir::Function& function);

}  // namespace lockstep::clike
