// Divergence: how each value varies over the lanes that run together, and which jumps part them. The lanes are
// those of a SIMD vector, or all of a group (for barriers).
//
// Statements about a value hold for the lanes that execute its instruction together. The lattice is
// unset < uniform = linear of stride 0 < linear of stride s < varying; a least fixed point over the
// structured flow. Assumes a kernel without races: a load at a uniform address is uniform.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::ir {

struct Form {
  enum Kind : uint8_t { unset, uniform, linear, varying };
  Kind kind = unset;
  bool exact = false;  // the linear law holds in unbounded integers: no active lane wraps
  int64_t stride = 0;

  bool is_uniform() const { return kind == uniform; }
  bool is_varying() const { return kind == varying; }
  bool is_linear(int64_t s) const { return kind == linear && stride == s; }
  friend bool operator==(const Form&, const Form&) = default;
};

/// Which lanes a vector holds.
enum class LaneScope : uint8_t {
  row,     // neighbours along x: of a points row, or of a group whose x size the vector's width divides
  linear,  // neighbours in the group's linear order that cross rows
  group,   // all lanes of a group
};

/// Scope of this kernel's vectors of so many lanes.
LaneScope lane_scope(const Function& function, int width);

/// Values that the inner part of a row knows in advance: clamps that change nothing, comparisons that are
/// settled.
struct Assumptions {
  /// clamp_index, imin, imax: the first operand (else the second) is the value; comparison: its outcome.
  std::unordered_map<Id, bool> settled;
  /// The operand that a settled clamp gives, or -1.
  int operand(const Function& f, Id id) const {
    const auto found = settled.find(id);
    if (found == settled.end()) return -1;
    const Op op = f[id].op;
    const bool clamps = op == Op::clamp_index || op == Op::imin || op == Op::imax;
    return clamps ? int(!found->second) : -1;
  }
};

class Divergence {
 public:
  /// `width`: lanes of a vector of a groups kernel, which begins at a multiple of it; 0 where that is not known.
  Divergence(const Function& function, LaneScope scope, const Assumptions* assumptions = nullptr,
             int width = 0);

  const Form& operator[](Id id) const { return forms_[id]; }
  bool uniform(Id id) const { return forms_[id].is_uniform(); }

  /// Whether some lanes may leave a loop, or skip the rest of a pass, while others continue.
  bool masked(Id loop) const {
    const Loop flags = loop_flags(loop);
    return flags.leaves || flags.continues || flags.returns;
  }
  /// Whether some lanes of a loop skip the rest of a pass.
  bool masked_continue(Id loop) const { return loop_flags(loop).continues; }
  /// Whether a break_, continue_ or return_ parts lanes: not all that run with it may jump, or others wait elsewhere.
  bool parting(Id jump) const { return parting_[jump]; }
  bool parting_return() const { return parting_return_; }
  /// Whether lanes may be gone behind this if_ or loop that ran before it.
  bool may_lose_lanes(Id id) const;
  /// Scope `group` only: whether some lanes may be absent when others run this, inside a divergent structure or
  /// after a divergent jump.
  bool in_divergent_flow(Id id) const { return partial_[id]; }
  /// A power of two that divides the value of a vector's first lane.
  int64_t alignment(Id id, int depth = 0) const;
  /// The largest value that a value of 0 or more takes; nothing where it may be negative or is not known.
  std::optional<int64_t> largest(Id id, int depth = 0) const;

 private:
  struct Loop {
    bool leaves = false, continues = false, returns = false;
  };
  Loop loop_flags(Id loop) const {
    const auto found = loops_.find(loop);
    return found == loops_.end() ? Loop{} : found->second;
  }
  void block(uint32_t number);
  void jump(Id id);
  void assign(Id id);
  void local_store(const Instruction& i);
  bool mark_partial(uint32_t number, bool partial);
  bool loses(uint32_t block, bool in_loop) const;
  void merge(Id id, const Form& form);
  void raise(bool& flag) {
    if (!flag) changed_ = flag = true;
  }
  Form counter_form(const Instruction& loop, const Form& begin) const;
  std::optional<Form> evaluate(Id id) const;
  Form arithmetic(Id id) const;
  Form position(const Instruction& i) const;
  std::optional<Form> part(const Instruction& i) const;
  void find_uses(uint32_t number, std::vector<Id>& path);

  const Function& f_;
  const LaneScope scope_;
  const Assumptions* assumptions_;
  const int width_;
  std::vector<Form> forms_;
  std::vector<Form> locals_;                  // by local array
  std::vector<Id> path_;                      // structures around the current place
  std::unordered_map<Id, size_t> depth_;      // of a variable: length of the path at its definition
  std::unordered_map<Id, Id> loop_of_reads_;  // of a variable: the loop, outermost below its definition, that
                                              // holds all reads; kNone where there is none such
  std::unordered_map<Id, Loop> loops_;
  std::unordered_map<Id, bool> skipped_;  // of a loop: lanes have skipped the rest of this pass
  mutable std::unordered_map<Id, bool> may_lose_;
  std::vector<bool> parting_, partial_;
  bool parting_return_ = false, changed_ = false;
  bool returned_ = false;  // of mark_partial: a return_ in divergent flow is earlier in the text
};

}  // namespace lockstep::ir
