// Reverse mode of a plain form.
//
// The reverse of a block is its statements, so that their values are visible, then their adjoints from last to first.
// Before an if_ or a loop the variables that it reads are kept; its adjoint restores them and replays it. The first run
// of a loop records, at the entry of each pass, the variables that the pass changes and its replay needs; its adjoint
// takes the passes from last to first, restores, replays and reverses each. A loop inside records anew in each replay, so
// that records take the sum over the levels of nesting.
//
// The lanes of a group share arrays: their contents are kept, recorded and restored by all lanes together, between
// barriers, and their adjoints are exact sums in a buffer, added to by loads and taken by stores. The reverse contains
// each barrier too, and further ones around each statement that contains a barrier.
//
// An adjoint is a value in the block of its definition, or a variable where a block inside contributes to it.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "autodiff/kernels/activity.hpp"
#include "lockstep/ir/builder.hpp"

namespace lockstep::gradients {

/// Where the cotangents of a written buffer come from and where contributions to a read buffer go.
enum class Flow : uint8_t {
  none,
  single,  // cotangent: one store at most hits an element; gradient: of the lane's own point, kept in a variable
  added,    // cotangent: of a buffer that atomic additions change and nothing else; read by each
  memory,   // in place: taken and set to 0 by a store, added to by a load; no two lanes share an element
  summed,   // added to exact sums
  gathered  // by a kernel of their own
};

/// Arguments of the generated kernels. The buffers of the plain form come first, in their order, where a single
/// cotangent takes the number of its output.
struct Plan {
  ir::Function f;  // plain form
  Roles roles;
  Activity activity;
  std::vector<Flow> cotangents, gradients;    // by buffer
  std::vector<uint32_t> cotangent, gradient;  // by buffer: the buffer that they are in; none: kNoBlock
  std::vector<uint32_t> terms;                // by scalar: number of the buffer with a term of each lane
  std::vector<uint32_t> shared;          // by shared array: the buffer with the sums of its adjoint, by group
  std::vector<ir::BufferParam> buffers;  // of the adjoint kernel
  std::vector<ir::ShapeRule> shapes;
  uint32_t record = ir::kNoBlock;  // buffer of records; rank 2: words, lanes
  ir::Place record_place = 0;      // of the first loop with a record
};

/// Throws InputError for what has no adjoint. `gathers`: inputs whose reads are shifts take no part (gather.hpp).
Plan plan_adjoint(const ir::Function& traced, const Roles& roles, bool gathers);
/// Into the kernel that `b` builds, whose parameters are set.
void emit_adjoint(const Plan& plan, ir::Builder& b);
/// The contribution of the lane at `point` (x first) to the element that it loads there by `load`; kNone: nothing. Of
/// straight plans.
ir::Id emit_contribution(const Plan& plan, ir::Builder& b, ir::Id load, const std::array<ir::Id, 3>& point);
/// Offset of the lane's own point in a buffer of the domain's rank.
ir::Id own_point(ir::Builder& b, uint32_t buffer);
/// A buffer with an element for each lane: of the extent's shape, or the lanes of group after group.
ir::BufferParam lane_buffer(const ir::Function& f, std::string name, Storage storage);
/// Words of records that each lane needs, at most kMostWords, into the last buffer.
void emit_count(const Plan& plan, ir::Builder& b);
inline constexpr int32_t kMostWords = 1 << 28;

}  // namespace lockstep::gradients
