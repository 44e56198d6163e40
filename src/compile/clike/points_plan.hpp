// Several points per lane where a lane would else hold too few bytes in flight: CUDA and WGSL.
#pragma once

#include "lockstep/ir/function.hpp"

namespace lockstep::clike {

/// Points of one lane: along x a block apart, so that lanes stay side by side; along y and z next to each
/// other, so that they share the lines of a stencil. Of more than one column, those lie next to each other, and the
/// lane takes them at all its points along the axis (CUDA alone).
struct PointsPlan {
  int axis = 0;
  int points = 1;
  int columns = 1;
  friend bool operator==(const PointsPlan&, const PointsPlan&) = default;
};
/// More than one point for short straight-line kernels without a block of the author's.
PointsPlan choose_points(const ir::Function& function);

}  // namespace lockstep::clike
