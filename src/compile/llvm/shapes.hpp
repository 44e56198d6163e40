// How each value varies over the lanes of one vector, and which jumps part lanes from each other.
//
// Statements about a value hold for the lanes that execute its instruction together. The lattice is
// unset < uniform = linear of stride 0 < linear of stride s < varying; a least fixed point over the
// structured flow.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::compile::simd {

struct Shape {
  enum Kind : uint8_t { unset, uniform, linear, varying };
  Kind kind = unset;
  bool exact = false;  // the linear law holds in unbounded integers: no active lane wraps
  int64_t stride = 0;

  bool is_uniform() const { return kind == uniform; }
  bool is_varying() const { return kind == varying; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// Which lanes a vector holds.
enum class LaneScope : uint8_t {
  row,     // neighbours along x: of a points row, or of a group whose x size the vector's width divides
  linear,  // neighbours in the group's linear order that cross rows
  group,   // all lanes of a group
};

/// Of this kernel in vectors of so many lanes.
LaneScope lane_scope(const ir::Function& function, int width);

/// Values that the inner part of a row knows in advance: clamps that change nothing, comparisons that are
/// settled.
struct Assumptions {
  /// clamp_index, imin, imax: the first operand (else the second) is the value; comparison: its outcome.
  std::unordered_map<ir::Id, bool> settled;
  /// The operand that a settled clamp gives, or -1.
  int operand(const ir::Function& f, ir::Id id) const {
    const auto found = settled.find(id);
    if (found == settled.end()) return -1;
    const ir::Op op = f[id].op;
    const bool clamps = op == ir::Op::clamp_index || op == ir::Op::imin || op == ir::Op::imax;
    return clamps ? int(!found->second) : -1;
  }
};

class Shapes {
 public:
  /// `width`: lanes of a vector of a groups kernel, which begins at a multiple of it; 0 where that is not known.
  Shapes(const ir::Function& function, LaneScope scope, const Assumptions* assumptions = nullptr,
         int width = 0);

  const Shape& operator[](ir::Id id) const { return shapes_[id]; }
  bool uniform(ir::Id id) const { return shapes_[id].is_uniform(); }

  /// Of a loop: some lanes may leave it, or skip the rest of a pass, while others go on.
  bool masked(ir::Id loop) const {
    const Loop flags = loop_flags(loop);
    return flags.leaves || flags.continues || flags.returns;
  }
  /// Of a loop: some lanes skip the rest of a pass.
  bool masked_continue(ir::Id loop) const { return loop_flags(loop).continues; }
  /// Of break_, continue_ and return_: not all lanes that run with it may jump, or others wait elsewhere.
  bool parting(ir::Id jump) const { return parting_[jump]; }
  bool parting_return() const { return parting_return_; }
  /// A power of two that divides the value of a vector's first lane.
  int64_t alignment(ir::Id id, int depth = 0) const;
  /// The largest value that a value of 0 or more takes; nothing where it may be negative or is not known.
  std::optional<int64_t> largest(ir::Id id, int depth = 0) const;

 private:
  struct Loop {
    bool leaves = false, continues = false, returns = false;
  };
  Loop loop_flags(ir::Id loop) const {
    const auto found = loops_.find(loop);
    return found == loops_.end() ? Loop{} : found->second;
  }
  void block(uint32_t number);
  void jump(ir::Id id);
  void assign(ir::Id id);
  void merge(ir::Id id, const Shape& shape);
  void raise(bool& flag) {
    if (!flag) changed_ = flag = true;
  }
  std::optional<Shape> evaluate(ir::Id id) const;
  Shape arithmetic(ir::Id id) const;
  Shape position(const ir::Instruction& i) const;
  std::optional<Shape> part(const ir::Instruction& i) const;
  void find_uses(uint32_t number, std::vector<ir::Id>& path);

  const ir::Function& f_;
  const LaneScope scope_;
  const Assumptions* assumptions_;
  const int width_;
  std::vector<Shape> shapes_;
  std::vector<ir::Id> path_;                  // structures around the current place
  std::unordered_map<ir::Id, size_t> depth_;  // of a variable: length of the path at its definition
  std::unordered_map<ir::Id, ir::Id>
      loop_of_reads_;  // of a variable: the loop, outermost below its definition, that
                       // holds all reads; kNone where there is none such
  std::unordered_map<ir::Id, Loop> loops_;
  std::vector<bool> parting_;
  bool parting_return_ = false, changed_ = false;
};

}  // namespace lockstep::compile::simd
