#include "compile/clike/wgsl_fixed.hpp"

namespace lockstep::clike {

using ir::Id;
using ir::Instruction;
using ir::Op;

namespace {

bool is_sum(Op op) { return op == Op::fadd || op == Op::fsub; }

/// The value behind signs.
Id bare(const ir::Function& f, Id id) {
  while (f[id].op == Op::fneg || f[id].op == Op::fabs) id = f[id].args[0];
  return id;
}

bool same(const ir::Function& f, Id a, Id b) {
  a = bare(f, a), b = bare(f, b);
  if (a == b) return true;
  if (f[a].op != Op::constant || f[b].op != Op::constant) return false;
  return ((f[a].imm ^ f[b].imm) & 0x7fffffffu) == 0;
}

}  // namespace

std::vector<bool> values_to_fix(const ir::Function& f) {
  std::vector<bool> fix(f.instructions.size(), false);
  const auto users_may_add = [](Op op) {
    switch (op) {
      case Op::fadd:
      case Op::fsub:
      case Op::fneg:
      case Op::fabs:
      case Op::select:
      case Op::variable:
      case Op::set:
      case Op::local_store:
      case Op::fmin:
      case Op::fmax: return true;
      default: return false;
    }
  };
  for (const ir::Block& block : f.blocks)
    for (Id user : block) {
      const Instruction& i = f[user];
      for (int a = 0; a < i.arg_count(); ++a) {
        const Id id = i.args[size_t(a)];
        if (f[id].op == Op::fmul && users_may_add(i.op)) fix[id] = true;
        if (!is_sum(i.op)) continue;
        const Id sum = bare(f, id);
        if (!is_sum(f[sum].op)) continue;
        for (int b = 0; b < 2; ++b)
          if (b != a)
            for (Id inner : {f[sum].args[0], f[sum].args[1]})
              if (same(f, inner, i.args[size_t(b)])) fix[sum] = true;
      }
    }
  return fix;
}

}  // namespace lockstep::clike
