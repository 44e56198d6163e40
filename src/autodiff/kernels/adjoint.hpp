// Reverse mode of a plain form.
//
// The reverse of a block is its statements, so that their values are visible, then their adjoints from last to first.
// Before an if_ or a loop the variables that it reads are kept; its adjoint restores them and replays it. The first run
// of a loop records, at the entry of each pass, the variables that the pass changes and its replay needs; its adjoint
// takes the passes from last to first, restores, replays and reverses each. A loop inside records again in each replay, so
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
  added,     // cotangent: of a buffer that atomic additions change and nothing else; read by each
  memory,    // in place: taken and set to 0 by a store, added to by a load; no two lanes share an element
  summed,    // added to exact sums
  listed,    // stored by lane, then added along a transposed table
  gathered,  // by a kernel of their own
  swept      // by one too: of a loop over all elements
};

/// Arguments of the generated kernels. The buffers of the plain form come first, in their order, where a single
/// cotangent takes the number of its output.
struct Plan {
  ir::Function f;  // plain form
  Roles roles;
  Activity activity;
  std::vector<Flow> cotangents, gradients;    // by buffer
  std::vector<uint32_t> cotangent, gradient;  // by buffer: the buffer that they are in; none: kNoBlock
  std::vector<bool> own;  // by buffer: a variable of the lane adds up what reads of its own point contribute
  std::vector<std::vector<ir::Id>> reads;  // by buffer that is listed: its other reads
  /// Contributions of a lane to a buffer that is listed: of each read, then to its own point.
  int64_t listed(uint32_t buffer) const { return int64_t(reads[buffer].size()) + own[buffer]; }
  std::vector<uint32_t> terms;           // by scalar: number of the buffer with a term of each lane
  std::vector<uint32_t> shared;          // by shared array: the buffer with the sums of its adjoint, by group
  std::vector<ir::BufferParam> buffers;  // of the adjoint kernel
  std::vector<ir::ShapeRule> shapes;
  uint32_t record = ir::kNoBlock;  // buffer of records; rank 2: words, lanes
  /// Records are in arrays of the lane instead; with a buffer, lanes note there that theirs do not fit.
  bool in_lanes = false;
  ir::Place record_place = 0;  // of the first loop with a record
};

/// Words of a loop's record that an array of the lane holds where the trip counts are known at the launch alone.
inline constexpr int kLaneRecordWords = 32;

/// The choices among ways to add contributions to an element, which give the same gradient.
struct Ways {
  bool gathers =
      false;  // inputs whose reads are shifts or loops over all take no part (gather.hpp, sums/sweep.hpp)
  bool tables = false;  // reads through index arrays are listed (sums/positions.hpp)
};
/// Throws InputError for what has no adjoint.
Plan plan_adjoint(const ir::Function& traced, const Roles& roles, Ways ways);
/// Into the kernel that `b` builds, whose parameters are set.
void emit_adjoint(const Plan& plan, ir::Builder& b);
/// The contribution of the lane at `point` (x first) to the element that it loads there by `load`; kNone: nothing. Of
/// straight plans.
ir::Id emit_contribution(const Plan& plan, ir::Builder& b, ir::Id load, const std::array<ir::Id, 3>& point);
/// Offset of the lane's own point in a buffer of the domain's rank.
ir::Id own_point(ir::Builder& b, uint32_t buffer);
/// Offset of the lane's element of row `word` in a buffer of rank 2: words, lanes.
ir::Id lane_word(ir::Builder& b, uint32_t buffer, ir::Id word);
/// The contribution of lane `lane` to element `element` of a buffer by a read that swept_reads() gives.
ir::Id emit_contribution_of_pass(const Plan& plan, ir::Builder& b, ir::Id load, ir::Id lane, ir::Id element);
/// A buffer with an element for each lane: of the extent's shape, or the lanes of group after group.
ir::BufferParam lane_buffer(const ir::Function& f, std::string name, Storage storage);
/// The most words of records that a lane needs, at most kMostWords, into the last buffer, of record_words(); nothing where
/// they are at most kLaneRecordWords.
void emit_count(const Plan& plan, ir::Builder& b);
/// Atomic maxima, which no lane adds to where the records of all fit into lanes; of kCountSlots elements.
ir::BufferParam record_words();
inline constexpr int32_t kMostWords = 1 << 28;
inline constexpr int32_t kCountSlots = 1024;  // a power of two; lanes of a warp take neighbours

}  // namespace lockstep::gradients
