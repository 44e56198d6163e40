// One switch from an operation to its body, for both kinds of number.
#pragma once

#include "lockstep/error.hpp"
#include "math/bodies/erf.hpp"
#include "math/bodies/exp.hpp"
#include "math/bodies/hyperbolic.hpp"
#include "math/bodies/inverse_trig.hpp"
#include "math/bodies/log.hpp"
#include "math/bodies/power.hpp"
#include "math/bodies/remainder.hpp"
#include "math/bodies/trig.hpp"

namespace lockstep::math {

/// The elementary function `op` of a, and of b where it has two operands.
template <template <class> class V, class T>
V<T> body(ir::Op op, V<T> a, V<T> b) {
  switch (op) {
#define LOCKSTEP_BODY1(name) name##_body<V, T>(a)
#define LOCKSTEP_BODY2(name) name##_body<V, T>(a, b)
#define LOCKSTEP_MATH(name, arity, ...) \
  case ir::Op::name: return LOCKSTEP_BODY##arity(name);
#include "lockstep/ir/ops.def"
#undef LOCKSTEP_BODY1
#undef LOCKSTEP_BODY2
    default: break;
  }
  throw InternalError("no body of this operation", ir::name(op), "a row LOCKSTEP_MATH of ops.def");
}

}  // namespace lockstep::math
