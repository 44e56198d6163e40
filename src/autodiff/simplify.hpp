// Rules that keep a graph small while it is built.
#pragma once

#include <optional>

#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {

/// True where the operands may be swapped.
bool commutes(Op op);

/// Simplifies one operation before its node is made. Never increases the number of operations of an
/// expression.
class Simplifier {
 public:
  explicit Simplifier(Tape& graph) : graph_(graph) {}
  /// The simpler value, or nothing where the operation stays.
  std::optional<Value> simplify(Op op, std::span<const Value> operands, int64_t imm);

 private:
  std::optional<Value> fold(Op op, std::span<const Value> operands, int64_t imm);
  std::optional<Value> arithmetic(Op op, const Value& a, const Value& b);
  std::optional<Value> unary(Op op, const Value& a);
  std::optional<Value> power(const Value& base, int64_t exponent);
  std::optional<Value> choose(const Value& condition, const Value& yes, const Value& no);
  const Node& node(const Value& v) const { return graph_.node(v.id()); }
  Value arg(const Value& v, int k) const { return {&graph_, node(v).args[size_t(k)]}; }
  bool is(const Value& v, Op op) const { return node(v).op == op; }

  Tape& graph_;
};

}  // namespace lockstep::autodiff
