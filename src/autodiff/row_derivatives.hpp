// The derivatives of ir/ops.def on any kind of value: Values of a graph, values of a kernel that is being traced.
#pragma once

#include <cstddef>
#include <optional>

#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {

/// a / (a^2 + b^2), whose squares neither overflow nor vanish.
template <class V>
V over_squares(const V& a, const V& b) {
  const auto less = abs(a) < abs(b);
  const V large = select(less, b, a), ratio = select(less, a, b) / large;
  return select(less, ratio, 1) / (large * (1 + ratio * ratio));
}

/// g times the partial derivative of an operation to its operand k, by its row of ops.def; nothing where that is zero. g
/// is the adjoint of the result r in reverse mode and the tangent of the operand in forward mode.
template <class V>
std::optional<V> row_derivative(Op op, size_t k, const V& a, const V& b, const V& r, const V& g) {
  switch (op) {
#define D(...) \
  if (k-- == 0) return __VA_ARGS__;
#define LOCKSTEP_NODE(name, word, kind, arity, op, host, derivative) \
  case Op::name: derivative break;
#define LOCKSTEP_MATH(name, arity, cuda, wgsl, host, derivative) \
  case Op::name: derivative break;
#include "lockstep/ir/ops.def"
#undef D
    default: break;
  }
  return {};
}

}  // namespace lockstep::autodiff
