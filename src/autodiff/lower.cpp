#include <fmt/format.h>

#include <bit>

#include "lockstep/autodiff.hpp"
#include "lockstep/kernel/math.hpp"

namespace lockstep::autodiff {

Lowering::Lowering(const Graph& graph, Type type, Leaf leaf)
    : graph_(&graph), type_(type), leaf_(std::move(leaf)) {
  if (!is_float(type))
    throw InputError(fmt::format("type {}", lockstep::name(type)), "autodiff Lowering", "f32 or f64");
}

ir::Id Lowering::operator()(const Value& value) {
  memo_.resize(graph_->size(), ir::kNone);
  for (uint32_t id : reachable(std::span(&value, 1)))
    if (memo_[id] == ir::kNone) memo_[id] = emit(graph_->node(id));
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

ir::Id product(ir::Id a, ir::Id b) {
  return lockstep::detail::builder().op(ir::Op::fmul, {a, b}, ir::kNoContract);
}

}  // namespace

ir::Id Lowering::fused_add(uint32_t a, uint32_t b, bool subtract) {
  ir::Builder& builder = lockstep::detail::builder();
  const auto negative = [&](ir::Id v) { return builder.op(ir::Op::fneg, {v}); };
  const Node &left = graph_->node(a), &right = graph_->node(b);
  if (right.op == Op::mul) {
    const ir::Id x = memo_[right.args[0]];
    return builder.op(ir::Op::fma, {subtract ? negative(x) : x, memo_[right.args[1]], memo_[a]});
  }
  if (left.op == Op::mul) {
    const ir::Id c = memo_[b];
    return builder.op(ir::Op::fma, {memo_[left.args[0]], memo_[left.args[1]], subtract ? negative(c) : c});
  }
  return builder.op(subtract ? ir::Op::fsub : ir::Op::fadd, {memo_[a], memo_[b]});
}

ir::Id Lowering::emit(const Node& node) {
  ir::Builder& b = lockstep::detail::builder();
  const auto arg = [&](size_t k) { return memo_[node.args[k]]; };
  switch (node.op) {
    case Op::constant: return b.number(type_, std::bit_cast<double>(node.imm));
    case Op::leaf: return leaf_(uint32_t(node.imm));
    case Op::add: return fused_add(node.args[0], node.args[1], false);
    case Op::sub: return fused_add(node.args[0], node.args[1], true);
    case Op::mul: return product(arg(0), arg(1));
    case Op::sum: {
      ir::Id total = arg(0);
      for (size_t k = 1; k < node.args.size(); ++k) {
        const Node& term = graph_->node(node.args[k]);
        total = term.op == Op::mul ? b.op(ir::Op::fma, {memo_[term.args[0]], memo_[term.args[1]], total})
                                   : b.op(ir::Op::fadd, {total, arg(k)});
      }
      return total;
    }
    case Op::powi: {
      const int64_t n = int64_t(node.imm);
      const uint64_t size = n < 0 ? 0 - uint64_t(n) : uint64_t(n);
      if (size > kProductPower) return b.op(ir::Op::pow, {arg(0), b.number(type_, double(n))});
      const ir::Id power = lockstep::detail::power_by_squaring(arg(0), size, product);
      return n < 0 ? b.op(ir::Op::fdiv, {b.number(type_, 1), power}) : power;
    }
    case Op::sign: {
      const ir::Id zero = b.number(type_, 0), one = b.number(type_, 1), minus = b.number(type_, -1);
      return b.select(b.op(ir::Op::flt, {zero, arg(0)}), one,
                      b.select(b.op(ir::Op::flt, {arg(0), zero}), minus, zero));
    }
    case Op::stop: return arg(0);
    case Op::select: return b.select(arg(0), arg(1), arg(2));
    default: break;
  }
  if (node.args.size() == 1) return b.op(kernel_op(node.op), {arg(0)});
  return b.op(kernel_op(node.op), {arg(0), arg(1)});
}

}  // namespace lockstep::autodiff
