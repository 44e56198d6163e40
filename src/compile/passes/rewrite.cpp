#include "compile/passes/rewrite.hpp"

namespace lockstep::compile {

using namespace ir;

std::vector<uint32_t> use_counts(const Function& f) {
  std::vector<uint32_t> uses(f.instructions.size(), 0);
  walk(f, 0, [&](uint32_t, size_t, Id id) {
    for (Id a : f[id].args)
      if (a != kNone) ++uses[a];
  });
  return uses;
}

void Replacement::apply(Function& f) const {
  if (!any_) return;
  walk(f, 0, [&](uint32_t, size_t, Id id) { apply(f[id]); });
}

void compact(Function& f) {
  std::vector<Id> number(f.instructions.size(), kNone);
  std::vector<Instruction> instructions;
  std::vector<Block> blocks;
  const std::function<uint32_t(uint32_t)> visit = [&](uint32_t from) {
    const uint32_t to = uint32_t(blocks.size());
    blocks.emplace_back();
    for (Id id : f.blocks[from]) {
      number[id] = Id(instructions.size());
      const Id moved = number[id];
      instructions.push_back(f[id]);
      blocks[to].push_back(moved);
      for (int k = 0; k < 2; ++k)
        if (f[id].blocks[k] != kNoBlock) {
          const uint32_t inner = visit(f[id].blocks[k]);
          instructions[moved].blocks[k] = inner;
        }
    }
    return to;
  };
  visit(0);
  for (Instruction& i : instructions)
    for (Id& a : i.args)
      if (a != kNone) a = number[a];
  f.instructions = std::move(instructions);
  f.blocks = std::move(blocks);
}

}  // namespace lockstep::compile
