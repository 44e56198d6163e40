// How a points kernel reaches around its point: coordinates with constant offsets under the boundary rules of the
// language, as the forms for lanes that lie inside need them. Reads the function; `inside_form` alone makes a new one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

/// The signed value of an integer constant.
int64_t signed_constant(const ir::Instruction& constant);
/// value = coord(axis) + offset?
bool match_coordinate(const ir::Function& f, ir::Id value, int& axis, int64_t& offset);
/// The extent's own source, through a conversion, so that equal extents are seen as one.
std::pair<ir::Op, uint64_t> extent_key(const ir::Function& f, ir::Id extent);
/// A shape, an extent of the domain or a scalar: known before the launch.
bool is_extent(const ir::Function& f, ir::Id value);

/// A periodic shift as the language writes it: with c = coord(axis) + offset % extent, c + extent where c < 0 (low), or
/// c - extent where extent <= c (high), else c.
struct Period {
  int axis = 0;
  ir::Id coord = ir::kNone, offset = ir::kNone, extent = ir::kNone;
  bool low = false;
};
bool match_period(const ir::Function& f, ir::Id value, Period& found);

/// The comparison of Boundary::zero: 0 <= coord(axis) + offset < extent, as unsigned numbers.
struct Within {
  int axis = 0;
  int64_t offset = 0;
  ir::Id extent = ir::kNone;
};
bool match_within(const ir::Function& f, const ir::Instruction& i, Within& found);

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
StencilReach stencil_reach(const ir::Function& f);

/// The body for lanes whose stencils lie inside along the axes named: what a period would carry to the other side stays
/// where it is, clamped coordinates are plain ones, and comparisons with an extent within the reach are true.
ir::Function inside_form(const ir::Function& f, std::array<bool, 3> axes = {true, true, true});

}  // namespace lockstep::compile
