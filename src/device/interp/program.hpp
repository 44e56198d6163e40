// A lowered function in the form that the interpreter runs: flat code for what a lane does by itself, a tree
// of nodes for what the lanes of a group do together.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::interp {

struct Machine;
struct Code;
using Handler = void (*)(Machine&, const Code&);

/// One instruction of a lane. Operands and result are slots of the lane's frame; jumps use `dst` as the
/// target.
struct Code {
  Handler run = nullptr;
  uint32_t dst = 0, a = 0, b = 0, c = 0;
  uint64_t imm = 0;
  ir::Id source = ir::kNone;
  uint32_t more = 0;  // stores: first of lanes further slots in Program::slots_of_wide
};

/// A coordinate of an access that has to lie inside its axis.
struct AxisCheck {
  uint32_t buffer;
  int axis;  // slowest first
  uint32_t slot;
  int lanes;  // elements from there on
  bool wide;  // i64
};

/// A step of a group as a whole. `lanes`: each lane runs code [begin, end) to its end, one after the other.
struct Node {
  enum Kind : uint8_t { lanes, barrier, reduce, if_, for_, loop };
  Kind kind = lanes;
  uint32_t begin = 0, end = 0;
  ir::Id source = ir::kNone;
  uint32_t turns = 0;  // loop: slot that counts its turns
  std::vector<Node> body, otherwise;
};

struct Program {
  ir::Function function;
  std::vector<Code> code;
  std::vector<Node> nodes;
  std::vector<uint32_t> slot;        // of each instruction's value
  std::vector<uint32_t> wide_slots;  // values of wide stores
  std::vector<AxisCheck> axis_checks;
  std::vector<uint32_t> turn_slots;  // of the loops around each uniform() value
  std::vector<ir::Id> constants;     // constant, param, shape, stride, extent: set once for a dispatch
  std::vector<ir::Id> positions;     // coord, local_id, lane: set once for a lane
  std::vector<uint32_t> local_offset, shared_offset;
  uint32_t slots = 0, local_elements = 0, shared_elements = 0;
  bool asynchronous = false;
};

/// `function` must be lowered (no elementary functions left) and verified.
Program decode(ir::Function function);
/// Whether the constant step of a for_ is positive, read as a signed number.
bool counts_up(const ir::Function& f, const ir::Instruction& loop);

}  // namespace lockstep::interp
