// The parts of a plain form again, in the kernel that is being built: what adjoints and counts of records share.
#pragma once

#include <optional>
#include <vector>

#include "autodiff/kernels/adjoint.hpp"

namespace lockstep::gradients {

/// A variable or an array that a loop records at the entry of each pass; of a shared array each lane its share.
struct Recorded {
  ir::Id variable = ir::kNone;  // kNone: the array
  uint32_t array = 0;
  bool shared = false;
  int words = 0;
};

class Replay {
 public:
  Replay(const Plan& plan, ir::Builder& b);

 protected:
  const ir::Instruction& at(ir::Id id) const { return plan_.f[id]; }
  ir::Id value(ir::Id id) const { return value_[id]; }
  void copy(ir::Id id);
  /// An instruction with what is inside of it.
  void forward(ir::Id id);
  void forward_block(uint32_t block, size_t start);
  /// The same loop with another body; `body` begins behind the head.
  void loop(ir::Id id, const std::function<void()>& body);
  /// Passes of a for_, from its bounds.
  ir::Id passes(ir::Id id);
  /// Variables from outside and arrays that `id` reads and whose contents are needed.
  std::vector<Recorded> read_in(ir::Id id) const;
  /// Those of them that the loop changes.
  std::vector<Recorded> recorded_in(ir::Id loop) const;
  int words_of(ir::Id loop) const;
  /// Whether a loop with a record is inside of `id` or is `id`.
  bool records(ir::Id id) const;
  bool records_inside(ir::Id id) const;
  /// Words of the loop's own record where its trip count is a constant.
  std::optional<int64_t> own_words(ir::Id loop) const;
  /// Words that the records in a block take where the trip counts of their loops are constants.
  std::optional<int64_t> constant_words(uint32_t block) const;
  bool has_adjoint(ir::Id id) const;
  const ir::ArrayDecl& declaration(const Recorded& r) const {
    return r.shared ? plan_.f.shared[r.array] : plan_.f.locals[r.array];
  }
  /// Elements of an array that a lane records.
  int share_of(const Recorded& r) const;
  /// Whether all lanes of a group meet inside of `id` or in it.
  bool meets(ir::Id id) const;

  const Plan& plan_;
  ir::Builder& b_;
  std::array<ir::Id, 3> point_{ir::kNone, ir::kNone, ir::kNone};  // in place of the lane's own; kNone: that
  std::vector<ir::Id> value_;  // of the plain form's values, as of their last emission
};

/// Whether nothing that has an adjoint is in a branch, a loop or an array, and cotangents are read alone. `loop`: one loop
/// is left out of this, and has an adjoint and no record.
bool is_straight(const Plan& plan, ir::Id loop = ir::kNone);
/// Whether any loop of the plan's function has a record, and the place of the first.
bool has_records(const Plan& plan, ir::Place& first);
/// Words of the records of each lane where all trip counts are constants.
std::optional<int64_t> constant_words(const Plan& plan);

}  // namespace lockstep::gradients
