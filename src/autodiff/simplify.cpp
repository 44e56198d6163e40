#include "autodiff/simplify.hpp"

#include <bit>
#include <cmath>

#include "autodiff/host_values.hpp"

namespace lockstep::autodiff {

std::optional<Value> Simplifier::fold(Op op, std::span<const Value> operands, int64_t imm) {
  if (operands.empty() || op == Op::select) return {};
  std::vector<double> numbers;
  for (const Value& v : operands) {
    if (!v.is_constant()) return {};
    numbers.push_back(std::bit_cast<double>(node(v).imm));
  }
  return graph_.constant(host::apply<double>(op, uint64_t(imm), numbers));
}

std::optional<Value> Simplifier::arithmetic(Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::add:
      if (a.is_constant(0)) return b;
      if (b.is_constant(0)) return a;
      if (is(b, Op::neg)) return a - arg(b, 0);
      if (is(a, Op::neg)) return b - arg(a, 0);
      return {};
    case Op::sub:
      if (b.is_constant(0)) return a;
      if (a.is_constant(0)) return -b;
      if (same_node(a, b)) return graph_.constant(0);
      if (is(b, Op::neg)) return a + arg(b, 0);
      return {};
    case Op::mul:
      if (a.is_constant()) return b.is_constant() ? std::optional<Value>() : arithmetic(Op::mul, b, a);
      if (b.is_constant(0)) return b;
      if (b.is_constant(1)) return a;
      if (b.is_constant(-1)) return -a;
      if (is(a, Op::neg) && is(b, Op::neg)) return arg(a, 0) * arg(b, 0);
      if (is(a, Op::neg)) return -(arg(a, 0) * b);
      if (is(b, Op::neg)) return -(a * arg(b, 0));
      // select(c, x, 0) * y is what derivatives of select, min and max give; keep the zero out of the
      // product.
      if (is(a, Op::select) && arg(a, 2).is_constant(0) && arg(a, 1).is_constant(1))
        return graph_.make(Op::select, {arg(a, 0), b, arg(a, 2)});
      if (is(b, Op::select) && arg(b, 2).is_constant(0) && arg(b, 1).is_constant(1))
        return graph_.make(Op::select, {arg(b, 0), a, arg(b, 2)});
      return {};
    case Op::div:
      if (a.is_constant(0)) return a;
      if (b.is_constant(1)) return a;
      if (b.is_constant(-1)) return -a;
      if (is(a, Op::neg)) return -(arg(a, 0) / b);
      return {};
    case Op::pow:
      if (b.is_constant()) {
        const double e = std::bit_cast<double>(node(b).imm);
        if (e == std::trunc(e) && std::abs(e) <= 64) return powi(a, int(e));
        if (e == 0.5) return sqrt(a);
        if (e == -0.5) return rsqrt(a);
      }
      return {};
    case Op::min:
    case Op::max: return same_node(a, b) ? std::optional(a) : std::nullopt;
    default: return {};
  }
}

std::optional<Value> Simplifier::unary(Op op, const Value& a) {
  switch (op) {
    case Op::neg:
      if (is(a, Op::neg)) return arg(a, 0);
      if (is(a, Op::sub)) return arg(a, 1) - arg(a, 0);
      return {};
    case Op::abs:
      if (is(a, Op::abs) || is(a, Op::sqrt)) return a;
      if (is(a, Op::neg)) return abs(arg(a, 0));
      return {};
    case Op::stop: return is(a, Op::stop) ? std::optional(a) : std::nullopt;
    case Op::logical_not: return is(a, Op::logical_not) ? std::optional(arg(a, 0)) : std::nullopt;
    default: return {};
  }
}

std::optional<Value> Simplifier::power(const Value& base, int64_t exponent) {
  switch (exponent) {
    case 0: return graph_.constant(1);
    case 1: return base;
    case 2: return base * base;
    case -1: return 1.0 / base;
    default: return {};
  }
}

std::optional<Value> Simplifier::choose(const Value& condition, const Value& yes, const Value& no) {
  if (condition.is_constant()) return condition.is_constant(0) ? no : yes;
  if (same_node(yes, no)) return yes;
  if (is(condition, Op::logical_not)) return graph_.make(Op::select, {arg(condition, 0), no, yes});
  return {};
}

std::optional<Value> Simplifier::simplify(Op op, std::span<const Value> operands, int64_t imm) {
  if (const auto folded = fold(op, operands, imm)) return folded;
  switch (op) {
    case Op::select: return choose(operands[0], operands[1], operands[2]);
    case Op::powi: return power(operands[0], imm);
    case Op::sum:
      if (operands.size() == 1) return operands[0];
      if (operands.size() == 2) return operands[0] + operands[1];
      return {};
    default: return operands.size() == 1 ? unary(op, operands[0]) : arithmetic(op, operands[0], operands[1]);
  }
}

}  // namespace lockstep::autodiff
