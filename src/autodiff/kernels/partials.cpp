#include "autodiff/kernels/partials.hpp"

#include "lockstep/kernel/dynamic.hpp"

namespace lockstep {

// Functions of the rows of ops.def that AnyVal does not have.
template <class A, class B>
  requires detail::AnyPair<A, B>
Val<bool> equal(const A& a, const B& b) {
  return a == b;
}

}  // namespace lockstep

#include "autodiff/row_derivatives.hpp"

namespace lockstep::gradients {

using autodiff::row_derivative;
using lockstep::detail::any_value;
using lockstep::detail::id_of;

namespace {

/// The node of the graph that is this operation of the machine; `count_`: none.
autodiff::Op node_of(ir::Op op) {
  switch (op) {
#define LOCKSTEP_NODE(name, word, kind, arity, op, ...) \
  case ir::Op::op: return autodiff::Op::name;
#define LOCKSTEP_MATH(name, ...) \
  case ir::Op::name: return autodiff::Op::name;
#include "lockstep/ir/ops.def"
    default: return autodiff::Op::count_;
  }
}

bool is_one(ir::Builder& b, ir::Id id) {
  const ir::Instruction& i = b.function()[id];
  return i.op == ir::Op::constant && i.imm == b.function()[b.number(i.type, 1)].imm;
}

AnyVal or_none(ir::Id id) { return id == ir::kNone ? AnyVal() : any_value(id); }

}  // namespace

bool has_derivative(ir::Op op) {
  switch (op) {
    case ir::Op::ffloor:
    case ir::Op::fceil:
    case ir::Op::ftrunc:
    case ir::Op::frint: return false;
    default: return true;
  }
}

ir::Id partial(const ir::Instruction& i, size_t k, const std::array<ir::Id, 3>& args, ir::Id result, ir::Id g,
               Type to) {
  ir::Builder& b = lockstep::detail::builder();
  switch (i.op) {
    case ir::Op::rounded:
    case ir::Op::uniform: return g;
    case ir::Op::convert: return b.convert(to, g);
    case ir::Op::select: {
      if (k == 0) return ir::kNone;
      const ir::Id zero = b.number(b.type(g), 0);
      return k == 1 ? b.select(args[0], g, zero) : b.select(args[0], zero, g);
    }
    case ir::Op::fma: return k == 2 ? g : b.op(ir::Op::fmul, {g, args[1 - k]});
    case ir::Op::fdiv:  // 1 / b is the reciprocal itself: one division less
      if (k == 1 && is_one(b, args[0]))
        return b.op(ir::Op::fneg, {b.op(ir::Op::fmul, {b.op(ir::Op::fmul, {g, result}), result})});
      break;
    default: break;
  }
  const autodiff::Op node = node_of(i.op);
  if (node == autodiff::Op::count_) return ir::kNone;
  const auto d = row_derivative(node, k, any_value(args[0]), or_none(args[1]), or_none(result), any_value(g));
  return d ? id_of(*d) : ir::kNone;
}

ir::Id unless_zero(ir::Builder& b, ir::Id g, ir::Id part) {
  if (part == ir::kNone || part == g) return part;
  return b.select(b.op(ir::Op::feq, {g, b.number(b.type(g), 0)}), b.number(b.type(part), 0), part);
}

ir::Id share_in_extreme(ir::Builder& b, ir::Id value, ir::Id extreme) {
  const ir::Id lane = b.emit(ir::Op::lane, Type::i32, {});
  const ir::Id has = b.op(ir::Op::feq, {value, extreme});
  const ir::Id first = b.emit(ir::Op::group_reduce, Type::i32, {b.select(has, lane, b.i32(INT32_MAX))},
                              uint64_t(ir::Reduction::min));
  return b.op(ir::Op::ieq, {lane, first});
}

}  // namespace lockstep::gradients
