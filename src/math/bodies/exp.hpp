// exp, exp2, expm1.
#pragma once

#include "math/bodies/arithmetic.hpp"

namespace lockstep::math {

/// Results of the functions leave every range outside of these arguments: overflow above, 0 (or -1) below.
template <class T>
inline constexpr T kExpMax = 0;
template <>
inline constexpr f32 kExpMax<f32> = 89.5f;
template <>
inline constexpr f64 kExpMax<f64> = 710.5;
template <class T>
inline constexpr T kExpMin = 0;
template <>
inline constexpr f32 kExpMin<f32> = -104.0f;
template <>
inline constexpr f64 kExpMin<f64> = -746.0;

/// e^x = 2^n (1 + q), |q| <= sqrt(2) - 1, with q = r + tail.
template <template <class> class V, class T>
struct ExpParts {
  V<T> n, r, tail;
};
template <template <class> class V, class T>
ExpParts<V, T> exp_parts(V<T> x) {
  const V<T> clamped = max(min(x, V<T>(kExpMax<T>)), V<T>(kExpMin<T>));
  const V<T> n = rint(clamped * V<T>(kLog2e<T>[0]));
  const V<T> first = fma(n, V<T>(-kLn2<T>[0]), clamped);
  const V<T> r = fma(n, V<T>(-kLn2<T>[1]), first);
  const V<T> rest = fma(n, V<T>(-kLn2<T>[1]), first - r);
  return {n, r, fma(r * r, polynomial<V, T>(r, kExp<T>), rest)};
}

/// e^x * 2^shift.
template <template <class> class V, class T>
V<T> exp_scaled(V<T> x, T shift) {
  const auto [n, r, tail] = exp_parts<V, T>(x);
  const V<T> p = V<T>(1) + (r + tail);
  return scale<V, T>(p, shift == 0 ? n : n + V<T>(shift));
}
template <template <class> class V, class T>
V<T> exp_body(V<T> x) {
  return exp_scaled<V, T>(x, T(0));
}

template <template <class> class V, class T>
V<T> exp2_body(V<T> x) {
  constexpr T kTop = Format<T>::kBias + 2, kBottom = -T(Format<T>::kBias + Format<T>::kMantissa + 3);
  const V<T> clamped = max(min(x, V<T>(kTop)), V<T>(kBottom));
  const V<T> n = rint(clamped);
  const V<T> r = clamped - n;
  return scale<V, T>(fma(r, polynomial<V, T>(r, kExp2<T>), V<T>(1)), n);
}

template <template <class> class V, class T>
V<T> expm1_body(V<T> x) {
  // The result is -1 below, and infinite above, where n stays bias + 1.
  constexpr T kBottom = -T(Format<T>::kMantissa + 2), kTop = kExpMax<T> - T(0.5);
  const auto [n, r, tail] = exp_parts<V, T>(min(max(x, V<T>(kBottom)), V<T>(kTop)));
  // 2^n (1 + r + tail) - 1, halved so that n = bias + 1 does not overflow early.
  const V<T> half = power_of_two<V, T>(n - V<T>(1));
  const V<T> sum = fma(half, tail, fma(half, r, half - V<T>(0.5)));
  return select(abs(x) < V<T>(T(1) / T(BitsOf<T>(1) << (Format<T>::kMantissa + 2))), x, V<T>(2) * sum);
}

}  // namespace lockstep::math
