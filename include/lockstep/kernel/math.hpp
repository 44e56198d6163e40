// Functions of the kernel language: the functions of ir/ops.def under their names (abs, min, fma, sqrt, exp, sin,
// atan2 …), and functions composed of them. Error bounds and special values: docs/numerics.md.
#pragma once

#include "lockstep/kernel/value.hpp"

namespace lockstep {

#define LOCKSTEP_WORD(word, arity, floats, integers) \
  LOCKSTEP_KERNEL_WORD##arity(word, ir::Op::floats, ir::Op::integers)
#define LOCKSTEP_MATH(name, arity, ...) LOCKSTEP_KERNEL_WORD##arity(name, ir::Op::name, ir::Op::none)
#include "lockstep/ir/ops.def"
#undef LOCKSTEP_KERNEL_WORD1
#undef LOCKSTEP_KERNEL_WORD2
#undef LOCKSTEP_KERNEL_WORD2_OF
#undef LOCKSTEP_KERNEL_WORD3
#undef LOCKSTEP_KERNEL_WORD3_OF

/// min(max(a, low), high); NaN is preserved.
template <detail::HasValue A, class L, class H>
  requires(!detail::Number<L> || !detail::Number<H>)
Val<detail::expr_t<A>> clamp(const A& a, const L& low, const H& high) {
  return min(max(a, low), high);
}
template <detail::HasValue A, detail::Number L, detail::Number H>
Val<detail::expr_t<A>> clamp(const A& a, L low, H high) {
  return min(max(a, low), high);
}

/// Largest exponent that powi computes by products.
inline constexpr int kProductPower = 64;
namespace detail {
/// base^n for n > 0 by squaring. product(x, y) returns one product.
template <class X, class Product>
X power_by_squaring(X base, uint64_t n, Product product) {
  for (; n % 2 == 0; n /= 2) base = product(base, base);
  X result = base;
  while (n /= 2) {
    base = product(base, base);
    if (n % 2) result = product(result, base);
  }
  return result;
}
}  // namespace detail
/// a to an integer power that is known during tracing. Floats: by squaring up to |n| = 64, by pow beyond. Integers:
/// products wrap, and a negative power is 1 divided by the positive one.
template <detail::HasValue A>
Val<detail::expr_t<A>> powi(const A& a, detail::Whole<int> power) {
  const int n = power;
  using T = detail::expr_t<A>;
  const uint64_t size = n < 0 ? 0 - uint64_t(n) : uint64_t(n);
  if constexpr (std::is_floating_point_v<T>)
    if (size > kProductPower) return pow(a, n);
  if (n == 0) return T(1);
  const Val<T> product =
      detail::power_by_squaring(Val<T>(a), size, [](const Val<T>& x, const Val<T>& y) { return x * y; });
  return n < 0 ? T(1) / product : product;
}

/// Sine and cosine of one angle.
template <class T>
struct SinCos {
  Val<T> sin, cos;
};
/// sin(a) and cos(a), bit-identical to the separate functions. In exact numerics the argument is reduced once for both.
template <detail::HasValue A>
SinCos<detail::expr_t<A>> sincos(const A& a) {
  const Val<detail::expr_t<A>> angle = a;
  const auto sine = sin(angle);
  return {sine, cos(angle)};
}

/// To the nearest integer, halves away from zero.
template <detail::HasValue A>
Val<detail::expr_t<A>> round(const A& a) {
  using T = detail::expr_t<A>;
  const Val<T> x = a, t = trunc(x);
  return copysign(select(abs(x - t) >= T(0.5), abs(t) + T(1), abs(t)), x);
}

}  // namespace lockstep
