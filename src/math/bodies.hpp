// One switch from an operation to its body, for both kinds of number.
#pragma once

#include "lockstep/error.hpp"
#include "math/erf.hpp"
#include "math/exp.hpp"
#include "math/hyperbolic.hpp"
#include "math/inverse_trig.hpp"
#include "math/log.hpp"
#include "math/power.hpp"
#include "math/remainder.hpp"
#include "math/trig.hpp"

namespace lockstep::math {

/// The elementary function `op` of a, and of b where it has two operands.
template <template <class> class V, class T>
V<T> body(ir::Op op, V<T> a, V<T> b) {
  switch (op) {
    case ir::Op::exp: return exp_body<V, T>(a);
    case ir::Op::exp2: return exp2_body<V, T>(a);
    case ir::Op::expm1: return expm1_body<V, T>(a);
    case ir::Op::log: return log_body<V, T>(a);
    case ir::Op::log2: return log2_body<V, T>(a);
    case ir::Op::log10: return log10_body<V, T>(a);
    case ir::Op::log1p: return log1p_body<V, T>(a);
    case ir::Op::pow: return pow_body<V, T>(a, b);
    case ir::Op::rsqrt: return rsqrt_body<V, T>(a);
    case ir::Op::cbrt: return cbrt_body<V, T>(a);
    case ir::Op::hypot: return hypot_body<V, T>(a, b);
    case ir::Op::sin: return sin_body<V, T>(a);
    case ir::Op::cos: return cos_body<V, T>(a);
    case ir::Op::tan: return tan_body<V, T>(a);
    case ir::Op::asin: return asin_body<V, T>(a);
    case ir::Op::acos: return acos_body<V, T>(a);
    case ir::Op::atan: return atan_body<V, T>(a);
    case ir::Op::atan2: return atan2_body<V, T>(a, b);
    case ir::Op::sinh: return sinh_body<V, T>(a);
    case ir::Op::cosh: return cosh_body<V, T>(a);
    case ir::Op::tanh: return tanh_body<V, T>(a);
    case ir::Op::sigmoid: return sigmoid_body<V, T>(a);
    case ir::Op::softplus: return softplus_body<V, T>(a);
    case ir::Op::erf: return erf_body<V, T>(a);
    case ir::Op::fmod: return fmod_body<V, T>(a, b);
    default: break;
  }
  throw InternalError("no body of this operation", ir::name(op), "a row LOCKSTEP_MATH of ops.def");
}

}  // namespace lockstep::math
