// Arithmetic shared by the bodies of the elementary functions. A body is a template over V, which is Val (the IR) or
// Host (plain numbers), and T, which is f32 or f64; docs/design/math.md has the derivations.
#pragma once

#include <array>
#include <limits>

#include "lockstep/kernel/control.hpp"
#include "math/bodies/coefficients.hpp"
#include "math/host.hpp"

namespace lockstep::math {

template <class T>
struct Format;
template <>
struct Format<f32> {
  using Bits = u32;
  using Int = i32;
  static constexpr int kWidth = 32, kMantissa = 23, kBias = 127;
};
template <>
struct Format<f64> {
  using Bits = u64;
  using Int = i64;
  static constexpr int kWidth = 64, kMantissa = 52, kBias = 1023;
};
template <class T>
using BitsOf = typename Format<T>::Bits;
template <class T>
using IntOf = typename Format<T>::Int;

template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
/// 1.5 * 2^mantissa: adding it to a small whole number leaves the number in the low bits.
template <class T>
inline constexpr T kShifter = T(3) * T(BitsOf<T>(1) << (Format<T>::kMantissa - 1));

// ── control flow on both kinds of number ──
template <template <class> class V, class T>
struct MutableOf {
  using type = Var<T>;
};
template <class T>
struct MutableOf<Host, T> {
  using type = Host<T>;
};
template <template <class> class V, class T>
using Mutable = typename MutableOf<V, T>::type;

template <class Then>
void when(const Val<bool>& condition, Then then) {
  if_(condition, then);
}
template <class Then>
void when(Host<bool> condition, Then then) {
  if (condition.v) then();
}
template <template <class> class V, class Condition, class Body>
void repeat_while(Condition condition, Body body) {
  if constexpr (std::same_as<V<f32>, Host<f32>>) {
    while (condition().v) body();
  } else {
    while_(condition, body);
  }
}

// ── polynomials ──
/// Horner's scheme; splitting into even and odd powers would lose up to half an ulp where the terms
/// alternate.
template <template <class> class V, class T, size_t N>
V<T> polynomial(V<T> x, const std::array<T, N>& c) {
  V<T> p = V<T>(c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) p = fma(p, x, V<T>(c[i]));
  return p;
}

// ── pairs: an unevaluated sum high + low with |low| <= ulp(high) / 2 ──
template <template <class> class V, class T>
struct Pair {
  V<T> high, low;
};
/// a + b where |a| >= |b| or a = 0.
template <template <class> class V, class T>
Pair<V, T> quick_sum(V<T> a, V<T> b) {
  const V<T> s = a + b;
  return {s, b - (s - a)};
}
/// a + b in any order of magnitude.
template <template <class> class V, class T>
Pair<V, T> exact_sum(V<T> a, V<T> b) {
  const V<T> s = a + b;
  const V<T> t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
template <template <class> class V, class T>
Pair<V, T> product(V<T> a, V<T> b) {
  const V<T> p = a * b;
  return {p, fma(a, b, -p)};
}

// ── bits ──
/// 2^n for a whole number n in the range of normal exponents.
template <template <class> class V, class T>
V<T> power_of_two(V<T> n) {
  const V<BitsOf<T>> biased = bitcast<BitsOf<T>>(n + V<T>(kShifter<T> + T(Format<T>::kBias)));
  return bitcast<T>(biased << V<BitsOf<T>>(Format<T>::kMantissa));
}
/// p * 2^n with one rounding, also where the result is subnormal or overflows; |n| below twice the exponent's
/// range.
template <template <class> class V, class T>
V<T> scale(V<T> p, V<T> n) {
  const V<T> half = rint(n * V<T>(0.5));
  return p * power_of_two<V, T>(half) * power_of_two<V, T>(n - half);
}
/// Low bits of a whole number |n| < 2^(mantissa - 1), two's complement.
template <template <class> class V, class T>
V<BitsOf<T>> whole_bits(V<T> n) {
  return bitcast<BitsOf<T>>(n + V<T>(kShifter<T>));
}

/// A small whole number (|k| < 2^31) as T; the f64 form needs no wide conversion.
template <template <class> class V, class T>
V<T> to_float(V<IntOf<T>> k) {
  if constexpr (std::same_as<T, f32>) {
    return cast<f32>(k);
  } else {
    return bitcast<f64>(k + V<i64>(std::bit_cast<i64>(kShifter<f64>))) - V<f64>(kShifter<f64>);
  }
}

/// Flips the sign of x where bit 0 of `odd` is set.
template <template <class> class V, class T>
V<T> negate_if_odd(V<T> x, V<BitsOf<T>> odd) {
  return bitcast<T>(bitcast<BitsOf<T>>(x) ^ (odd << V<BitsOf<T>>(Format<T>::kWidth - 1)));
}
/// x with the sign of s flipped in.
template <template <class> class V, class T>
V<T> multiply_sign(V<T> x, V<T> s) {
  const V<BitsOf<T>> sign = bitcast<BitsOf<T>>(s) & V<BitsOf<T>>(BitsOf<T>(1) << (Format<T>::kWidth - 1));
  return bitcast<T>(bitcast<BitsOf<T>>(x) ^ sign);
}

}  // namespace lockstep::math
