// The values that derivatives flow through and those that reverse mode needs again, by fixed points that ignore the order of statements.
#pragma once

#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::gradients {

/// The arguments that take part, by their numbers in the function.
struct Roles {
  std::vector<bool> input_buffers, output_buffers, input_scalars;
};

/// Of the local arrays, or of the shared ones.
struct ArrayActivity {
  std::vector<bool> varied, active, needed;
};

struct Activity {
  std::vector<bool> varied;  // floats, variables: depend on an input
  std::vector<bool> active;  // and an output depends on them
  std::vector<bool> needed;  // values and variables that derivatives, conditions and offsets are made of
  std::vector<bool>
      hidden;  // active, perhaps without bound in value or slope, and what `select`, `min` or `max` may leave out
  std::vector<bool> muted;  // varied, perhaps without bound in slope: of operands that do not vary here, 0
  ArrayActivity locals, shared;
};

inline bool touches_shared(const ir::Instruction& i) {
  return i.op == ir::Op::shared_load || i.op == ir::Op::shared_store;
}

/// Varied and muted values alone: what forward mode requests. Buffers that are varied: inputs and outputs.
Activity find_varied(const ir::Function& f, const Roles& roles);
/// All of it, of a plain form.
Activity find_activity(const ir::Function& f, const Roles& roles);

}  // namespace lockstep::gradients
