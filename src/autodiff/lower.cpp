#include <fmt/format.h>

#include <bit>

#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {

Lowering::Lowering(const Tape& graph, Type type, Leaf leaf)
    : graph_(&graph), type_(type), leaf_(std::move(leaf)) {
  if (!is_float(type))
    throw InputError(fmt::format("type {}", lockstep::name(type)), "autodiff Lowering", "f32 or f64");
}

AnyVal Lowering::operator()(const Value& value) {
  memo_.resize(graph_->size());
  for (uint32_t id : reachable(std::span(&value, 1)))
    if (memo_[id].empty()) memo_[id] = emit(graph_->node(id));
  return memo_[value.id()];
}

namespace {

ir::Op kernel_op(Op op) {
  switch (op) {
#define LOCKSTEP_NODE(name, word, kind, arity, op, ...) \
  case Op::name: return ir::Op::op;
#define LOCKSTEP_MATH(name, ...) \
  case Op::name: return ir::Op::name;
#include "lockstep/ir/ops.def"
    default: throw InternalError("no kernel operation", std::string(name(op)), "an elementary operation");
  }
}

AnyVal apply(Op op, const AnyVal& a) {
  return lockstep::detail::any_value(
      lockstep::detail::builder().op(kernel_op(op), {lockstep::detail::id_of(a)}));
}
AnyVal apply(Op op, const AnyVal& a, const AnyVal& b) {
  return lockstep::detail::any_value(lockstep::detail::builder().op(
      kernel_op(op), {lockstep::detail::id_of(a), lockstep::detail::id_of(b)}));
}

}  // namespace

AnyVal Lowering::fused_add(uint32_t a, uint32_t b, bool subtract) {
  const Node &left = graph_->node(a), &right = graph_->node(b);
  if (right.op == Op::mul) {
    const AnyVal x = memo_[right.args[0]];
    return fma(subtract ? -x : x, memo_[right.args[1]], memo_[a]);
  }
  if (left.op == Op::mul) {
    const AnyVal c = memo_[b];
    return fma(memo_[left.args[0]], memo_[left.args[1]], subtract ? -c : c);
  }
  return subtract ? memo_[a] - memo_[b] : memo_[a] + memo_[b];
}

AnyVal Lowering::emit(const Node& node) {
  const auto arg = [&](size_t k) -> const AnyVal& { return memo_[node.args[k]]; };
  switch (node.op) {
    case Op::constant: return AnyVal::number(type_, std::bit_cast<double>(node.imm));
    case Op::leaf: {
      const AnyVal leaf = leaf_(uint32_t(node.imm));
      if (leaf.type() != type_)
        throw InputError(fmt::format("leaf {} of type {}", graph_->leaf_name(uint32_t(node.imm)),
                                     lockstep::name(leaf.type())),
                         "autodiff Lowering", std::string(lockstep::name(type_)));
      return leaf;
    }
    case Op::add: return fused_add(node.args[0], node.args[1], false);
    case Op::sub: return fused_add(node.args[0], node.args[1], true);
    case Op::mul: return rounded_product(arg(0), arg(1));
    case Op::sum: {
      AnyVal total = arg(0);
      for (size_t k = 1; k < node.args.size(); ++k) {
        const Node& term = graph_->node(node.args[k]);
        total = term.op == Op::mul ? fma(memo_[term.args[0]], memo_[term.args[1]], total) : total + arg(k);
      }
      return total;
    }
    case Op::powi: {
      const int64_t n = int64_t(node.imm);
      const uint64_t size = n < 0 ? 0 - uint64_t(n) : uint64_t(n);
      if (size > kProductPower) return pow(arg(0), double(n));
      const AnyVal power = lockstep::detail::power_by_squaring(
          arg(0), size, [](const AnyVal& x, const AnyVal& y) { return rounded_product(x, y); });
      return n < 0 ? 1 / power : power;
    }
    case Op::sign: {
      const AnyVal zero = AnyVal::number(type_, 0), one = AnyVal::number(type_, 1),
                   minus = AnyVal::number(type_, -1);
      const Val<bool> above = zero < arg(0), below = arg(0) < zero;
      return lockstep::select(above, one, lockstep::select(below, minus, zero));
    }
    case Op::stop: return arg(0);
    case Op::select: return lockstep::select(arg(0), arg(1), arg(2));
    default: break;
  }
  return node.args.size() == 1 ? apply(node.op, arg(0)) : apply(node.op, arg(0), arg(1));
}

}  // namespace lockstep::autodiff
