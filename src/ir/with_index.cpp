#include "ir/with_index.hpp"

namespace lockstep::ir {

Function with_index(const Function& traced, Type index) {
  const auto chosen = [&](Type type) { return type == kIndexType ? index : type; };
  Function f = traced;
  for (Function& called : f.functions) called = with_index(called, index);
  f.index_type = index;
  f.instructions.clear();
  std::vector<Id> moved(traced.instructions.size(), kNone);
  std::vector<bool> left_out(traced.instructions.size(), false);
  for (size_t id = 0; id < traced.instructions.size(); ++id) {
    Instruction i = traced.instructions[id];
    const Type from = i.op == Op::convert ? chosen(traced[i.args[0]].type) : Type::none;
    i.type = chosen(i.type);
    for (Id& arg : i.args)
      if (arg != kNone) arg = moved[arg];
    left_out[id] = i.op == Op::convert && from == i.type;
    if (left_out[id]) {
      moved[id] = i.args[0];
      continue;
    }
    if (i.op == Op::constant && traced.instructions[id].type == kIndexType && index == Type::i32)
      i.imm &= 0xffffffffu;
    moved[id] = Id(f.instructions.size());
    f.instructions.push_back(i);
  }
  for (size_t b = 0; b < f.blocks.size(); ++b) {
    f.blocks[b].clear();
    for (Id id : traced.blocks[b])
      if (!left_out[id]) f.blocks[b].push_back(moved[id]);
  }
  return f;
}

}  // namespace lockstep::ir
