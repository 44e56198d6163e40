#include "compile/passes/expressions/contract_fma.hpp"

#include "compile/passes/rewrite.hpp"
#include "lockstep/ir/builder.hpp"

namespace lockstep::compile {

using namespace ir;

namespace {

/// Op::rounded is replaced by its operand once no contraction can cross it.
void end_rounded(Function& f) {
  Replacement replaced(f.instructions.size());
  for (Block& block : f.blocks)
    std::erase_if(block, [&](Id id) {
      if (f[id].op != Op::rounded) return false;
      replaced.set(id, f[id].args[0]);
      return true;
    });
  if (replaced.any()) replaced.apply(f);
}

void contract(Function& f) {
  const std::vector<uint32_t> uses = use_counts(f);
  constexpr uint32_t kOutside = ~uint32_t(0);
  std::vector<uint32_t> block_of(f.instructions.size(), kOutside);
  for (uint32_t b = 0; b < f.blocks.size(); ++b)
    for (Id id : f.blocks[b]) block_of[id] = b;
  const auto contractible = [&](Id id, uint32_t block) {
    return f[id].op == Op::fmul && uses[id] == 1 && block_of[id] == block;
  };

  std::vector<bool> absorbed(f.instructions.size(), false);
  const size_t block_count = f.blocks.size();
  for (uint32_t b = 0; b < block_count; ++b) {
    const Block old = std::move(f.blocks[b]);
    f.blocks[b] = {};
    Builder builder(f);
    builder.set_current(b);
    for (Id id : old) {
      const Instruction i = f[id];
      if (i.op == Op::fadd || i.op == Op::fsub) {
        const int side = contractible(i.args[0], b) ? 0 : contractible(i.args[1], b) ? 1 : -1;
        if (side >= 0) {
          const Id product = i.args[side], other = i.args[1 - side];
          Id x = f[product].args[0], z = other;
          if (i.op == Op::fsub && side == 0) z = builder.op(Op::fneg, {other});
          if (i.op == Op::fsub && side == 1) x = builder.op(Op::fneg, {x});
          f[id].op = Op::fma;
          f[id].args = Instruction::operands({x, f[product].args[1], z});
          absorbed[product] = true;
        }
      }
      f.blocks[b].push_back(id);
    }
  }
  for (Block& block : f.blocks)
    std::erase_if(block, [&](Id id) { return id < absorbed.size() && absorbed[id]; });
}

}  // namespace

void contract_fma(Function& f) {
  if (f.contract) contract(f);
  end_rounded(f);
}

}  // namespace lockstep::compile
