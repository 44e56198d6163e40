// Functions of the kernel language. Error bounds and special values: docs/numerics.md.
#pragma once

#include "lockstep/kernel/value.hpp"

namespace lockstep {

#define LOCKSTEP_UNARY(name, opcode)                                                  \
  template <detail::HasValue A>                                                       \
    requires std::is_floating_point_v<detail::expr_t<A>>                              \
  Val<detail::expr_t<A>> name(const A& a) {                                           \
    using T = detail::expr_t<A>;                                                      \
    return Val<T>::from(detail::builder().op(ir::Op::opcode, {detail::id_of<T>(a)})); \
  }
#define LOCKSTEP_BINARY(name, opcode)                                  \
  template <class A, class B>                                          \
    requires std::is_floating_point_v<detail::common_t<A, B>>          \
  Val<detail::common_t<A, B>> name(const A& a, const B& b) {           \
    using T = detail::common_t<A, B>;                                  \
    return detail::binary<T, T>(ir::Op::opcode, ir::Op::opcode, a, b); \
  }
LOCKSTEP_UNARY(sqrt, fsqrt)  // correctly rounded on CPU and CUDA
LOCKSTEP_UNARY(floor, ffloor)
LOCKSTEP_UNARY(ceil, fceil)
LOCKSTEP_UNARY(trunc, ftrunc)
LOCKSTEP_UNARY(rint, frint)  // to nearest, halves to even
LOCKSTEP_UNARY(exp, exp)
LOCKSTEP_UNARY(exp2, exp2)
LOCKSTEP_UNARY(expm1, expm1)
LOCKSTEP_UNARY(log, log)
LOCKSTEP_UNARY(log2, log2)
LOCKSTEP_UNARY(log10, log10)
LOCKSTEP_UNARY(log1p, log1p)
LOCKSTEP_UNARY(rsqrt, rsqrt)
LOCKSTEP_UNARY(cbrt, cbrt)
LOCKSTEP_UNARY(sin, sin)
LOCKSTEP_UNARY(cos, cos)
LOCKSTEP_UNARY(tan, tan)
LOCKSTEP_UNARY(asin, asin)
LOCKSTEP_UNARY(acos, acos)
LOCKSTEP_UNARY(atan, atan)
LOCKSTEP_UNARY(sinh, sinh)
LOCKSTEP_UNARY(cosh, cosh)
LOCKSTEP_UNARY(tanh, tanh)
LOCKSTEP_UNARY(sigmoid, sigmoid)    // 1 / (1 + exp(-x))
LOCKSTEP_UNARY(softplus, softplus)  // log(1 + exp(x))
LOCKSTEP_UNARY(erf, erf)
LOCKSTEP_BINARY(pow, pow)
LOCKSTEP_BINARY(hypot, hypot)
LOCKSTEP_BINARY(atan2, atan2)
LOCKSTEP_BINARY(fmod, fmod)
LOCKSTEP_BINARY(copysign, fcopysign)
#undef LOCKSTEP_UNARY
#undef LOCKSTEP_BINARY

#define LOCKSTEP_CLASSIFY(name)                                                                        \
  template <detail::HasValue A>                                                                        \
    requires std::is_floating_point_v<detail::expr_t<A>>                                               \
  Val<bool> name(const A& a) {                                                                         \
    return Val<bool>::from(detail::builder().op(ir::Op::name, {detail::id_of<detail::expr_t<A>>(a)})); \
  }
LOCKSTEP_CLASSIFY(isnan)
LOCKSTEP_CLASSIFY(isinf)
LOCKSTEP_CLASSIFY(isfinite)
#undef LOCKSTEP_CLASSIFY

/// b < a ? b : a. A NaN in `a` stays, a NaN in `b` gives `a`.
template <class A, class B>
Val<detail::common_t<A, B>> min(const A& a, const B& b) {
  using T = detail::common_t<A, B>;
  return detail::binary<T, T>(ir::Op::fmin, ir::Op::imin, a, b);
}
/// a < b ? b : a. A NaN in `a` stays, a NaN in `b` gives `a`.
template <class A, class B>
Val<detail::common_t<A, B>> max(const A& a, const B& b) {
  using T = detail::common_t<A, B>;
  return detail::binary<T, T>(ir::Op::fmax, ir::Op::imax, a, b);
}
template <class A, class L, class H>
Val<detail::expr_t<A>> clamp(const A& a, const L& low, const H& high) {
  return min(max(a, low), high);
}
template <detail::HasValue A>
Val<detail::expr_t<A>> abs(const A& a) {
  using T = detail::expr_t<A>;
  return Val<T>::from(
      detail::builder().op(std::is_floating_point_v<T> ? ir::Op::fabs : ir::Op::iabs, {detail::id_of<T>(a)}));
}
namespace detail {
template <class A, class B, class C>
struct Common3 {
  using type = common_t<A, B>;
};
template <class A, class B, HasValue C>
struct Common3<A, B, C> {
  using type = expr_t<C>;
};
}  // namespace detail
/// a * b + c with one rounding.
template <class A, class B, class C>
  requires(detail::HasValue<A> || detail::HasValue<B> || detail::HasValue<C>)
auto fma(const A& a, const B& b, const C& c) {
  using T = typename detail::Common3<A, B, C>::type;
  return Val<T>::from(
      detail::builder().op(ir::Op::fma, {detail::id_of<T>(a), detail::id_of<T>(b), detail::id_of<T>(c)}));
}
/// x to a whole power known at trace time, by squaring.
template <detail::HasValue A>
Val<detail::expr_t<A>> powi(const A& a, int n) {
  using T = detail::expr_t<A>;
  Val<T> base = a, result = T(1);
  bool any = false;
  for (unsigned k = unsigned(n < 0 ? -n : n); k; k >>= 1) {
    if (k & 1) result = any ? result * base : base, any = true;
    if (k > 1) base = base * base;
  }
  return n < 0 ? Val<T>(T(1)) / result : result;
}
/// To nearest, halves away from zero.
template <detail::HasValue A>
Val<detail::expr_t<A>> round(const A& a) {
  using T = detail::expr_t<A>;
  const Val<T> x = a, t = trunc(x);
  return copysign(select(abs(x - t) >= T(0.5), abs(t) + T(1), abs(t)), x);
}

#define LOCKSTEP_BITS(name, opcode)                                                   \
  template <detail::HasValue A>                                                       \
    requires std::is_integral_v<detail::expr_t<A>>                                    \
  Val<detail::expr_t<A>> name(const A& a) {                                           \
    using T = detail::expr_t<A>;                                                      \
    return Val<T>::from(detail::builder().op(ir::Op::opcode, {detail::id_of<T>(a)})); \
  }
LOCKSTEP_BITS(popcount, popcount)
LOCKSTEP_BITS(clz, clz)  // the width for 0
LOCKSTEP_BITS(ctz, ctz)
#undef LOCKSTEP_BITS
/// High word of the unsigned product.
template <class A, class B>
Val<detail::common_t<A, B>> umulhi(const A& a, const B& b) {
  using T = detail::common_t<A, B>;
  return detail::binary<T, T>(ir::Op::count_, ir::Op::umulhi, a, b);
}

}  // namespace lockstep
