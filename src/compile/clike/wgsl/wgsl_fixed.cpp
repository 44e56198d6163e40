#include "compile/clike/wgsl/wgsl_fixed.hpp"

namespace lockstep::clike {

using ir::Id;
using ir::Instruction;
using ir::Op;

namespace {

bool is_sum(Op op) { return op == Op::fadd || op == Op::fsub; }
bool is_product(Op op) { return op == Op::fmul || op == Op::fdiv; }

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

bool has_constant(const ir::Function& f, const Instruction& i) {
  return f[bare(f, i.args[0])].op == Op::constant || f[bare(f, i.args[1])].op == Op::constant;
}

/// Whether a product may reach a sum through this user: directly, through a sign, a choice or a variable.
bool may_pass_to_sum(Op op) {
  switch (op) {
    case Op::fadd:
    case Op::fsub:
    case Op::fma:  // a b c + a d = a (b c + d)
    case Op::fneg:
    case Op::fabs:
    case Op::select:
    case Op::variable:
    case Op::set:
    case Op::local_store:
    case Op::call:  // a driver's compiler may put the function's body there
    case Op::result:
    case Op::fmin:
    case Op::fmax: return true;
    default: return false;
  }
}

}  // namespace

std::vector<bool> values_to_fix(const ir::Function& f) {
  std::vector<bool> fix(f.instructions.size(), false);
  for (const ir::Block& block : f.blocks)
    for (Id user : block) {
      const Instruction& i = f[user];
      for (int a = 0; a < i.arg_count(); ++a) {
        const Id id = i.args[size_t(a)];
        if (f[id].op == Op::fmul && may_pass_to_sum(i.op)) fix[id] = true;
        const Id inner = bare(f, id);
        const bool chain =
            (is_sum(i.op) && is_sum(f[inner].op)) || (is_product(i.op) && is_product(f[inner].op));
        if (!chain) continue;
        const Id other = i.args[size_t(1 - a)];
        if (same(f, f[inner].args[0], other) || same(f, f[inner].args[1], other) || has_constant(f, i) ||
            has_constant(f, f[inner]))
          fix[inner] = true;
      }
    }
  return fix;
}

}  // namespace lockstep::clike
