// pow, rsqrt, cbrt, hypot.
#pragma once

#include "math/bodies/log.hpp"

namespace lockstep::math {

/// log2 of 2^k (1 + f) as a pair, relative error about 2^-31 (f32) and 2^-64 (f64).
template <template <class> class V, class T>
Pair<V, T> log2_pair(V<T> k, V<T> f) {
  // s = f / (2 + f); log2(1 + f) = s (2 + z (2/3 + z P(z))) log2(e), z = s².
  const V<T> d = V<T>(2) + f;
  const V<T> d_low = f - (d - V<T>(2));
  const V<T> inverse = V<T>(1) / d;
  const V<T> s = f * inverse;
  const V<T> s_low = (fma(-s, d, f) - s * d_low) * inverse;
  const auto [z, z_error] = product<V, T>(s, s);
  const V<T> z_low = fma(V<T>(2) * s, s_low, z_error);

  const auto [u, u_error] = quick_sum<V, T>(V<T>(kTwoThirdsLog2e<T>[0]), z * polynomial<V, T>(z, kPowLog<T>));
  const V<T> u_low = u_error + V<T>(kTwoThirdsLog2e<T>[1]);
  const auto [v, v_error] = product<V, T>(z, u);
  const V<T> v_low = fma(z, u_low, fma(z_low, u, v_error));
  const auto [w, w_error] = quick_sum<V, T>(V<T>(kTwoLog2e<T>[0]), v);
  const V<T> w_low = w_error + (V<T>(kTwoLog2e<T>[1]) + v_low);
  const auto [p, p_error] = product<V, T>(s, w);
  const V<T> p_low = fma(s, w_low, fma(s_low, w, p_error));

  const auto [high, error] = quick_sum<V, T>(k, p);
  return quick_sum<V, T>(high, error + p_low);
}

template <template <class> class V, class T>
V<T> pow_body(V<T> x, V<T> y) {
  const V<T> magnitude = abs(x);
  const auto [k, f] = log_parts<V, T>(magnitude);
  const auto [log_high, log_low] = log2_pair<V, T>(k, f);

  // 2^(y log2|x|); beyond `kBeyond` the result has left every range, and the low part may not be a number.
  constexpr T kBeyond = T(2 * Format<T>::kBias + 100);
  const V<T> e = y * log_high;
  const V<T> high = max(min(e, V<T>(kBeyond)), V<T>(-kBeyond));
  const V<T> low = select(abs(e) < V<T>(kBeyond), fma(y, log_low, fma(y, log_high, -e)), V<T>(0));
  const V<T> n =
      rint(max(min(high, V<T>(Format<T>::kBias + 2)), V<T>(-Format<T>::kBias - Format<T>::kMantissa - 3)));
  const V<T> r = select(abs(high - n) <= V<T>(1), high - n, V<T>(0)) + low;
  const V<T> finite = scale<V, T>(fma(r, polynomial<V, T>(r, kExp2<T>), V<T>(1)), n);

  const V<bool> whole = trunc(y) == y;
  const V<T> half = V<T>(0.5) * y;
  const V<bool> odd = whole && trunc(half) != half;
  const V<bool> pole = magnitude == V<T>(0) || magnitude == V<T>(kInfinity<T>);
  const V<bool> grows = (magnitude == V<T>(0)) == (y < V<T>(0));
  V<T> result = select(pole, select(grows, V<T>(kInfinity<T>), V<T>(0)), finite);
  result = select(magnitude == V<T>(1), V<T>(1), result);
  result = select(odd, multiply_sign<V, T>(result, x), result);
  result = select(x < V<T>(0) && x > V<T>(-kInfinity<T>) && !whole, V<T>(kNan<T>), result);
  result = select(isnan(x) || isnan(y), x + y, result);
  return select(y == V<T>(0) || x == V<T>(1), V<T>(1), result);
}

template <template <class> class V, class T>
V<T> rsqrt_body(V<T> x) {
  return V<T>(1) / sqrt(x);
}

template <template <class> class V, class T>
V<T> cbrt_body(V<T> x) {
  // Magnitudes whose cube's rounding error would be lost, or that would overflow, are scaled by a power of
  // eight.
  constexpr bool kShort = std::same_as<T, f32>;
  constexpr int kLift = kShort ? 96 : 600;
  constexpr auto power = [](int n) {
    return std::bit_cast<T>(BitsOf<T>(Format<T>::kBias + n) << Format<T>::kMantissa);
  };
  const V<T> magnitude = abs(x);
  const V<bool> small =
      magnitude<V<T>(power(kShort ? -40 : -400)), large = magnitude> V<T>(power(kShort ? 100 : 900));
  const V<T> a = magnitude * select(small, V<T>(power(kLift)), select(large, V<T>(power(-kLift)), V<T>(1)));
  const V<T> back = select(small, V<T>(power(-kLift / 3)), select(large, V<T>(power(kLift / 3)), V<T>(1)));
  // First guess: a third of the exponent and mantissa bits, within 3.2 %.
  V<T> t = a;
  if constexpr (std::same_as<T, f32>) {
    t = bitcast<f32>(umulhi(bitcast<u32>(a), V<u32>(0x55555556u)) + V<u32>(0x2a511555u));
  } else {
    const V<u32> top = cast<u32>(bitcast<u64>(a) >> V<u64>(32));
    t = bitcast<f64>(cast<u64>(umulhi(top, V<u32>(0x55555556u)) + V<u32>(0x2a9f7800u)) << V<u64>(32));
  }
  // Halley's step cubes the relative error; the last step is Newton's, with an exact residual.
  for (int i = 0; i < (std::same_as<T, f32> ? 1 : 2); ++i) {
    const V<T> cube = t * t * t;
    t = t * ((cube + (a + a)) / ((cube + cube) + a));
  }
  const auto [square, square_low] = product<V, T>(t, t);
  const auto [cube, cube_low] = product<V, T>(square, t);
  const V<T> residual = (a - cube) - fma(square_low, t, cube_low);
  const V<T> root = t + residual / (V<T>(3) * square);
  const V<bool> ordinary = magnitude > V<T>(0) && magnitude < V<T>(kInfinity<T>);
  return select(ordinary, copysign(root * back, x), x);
}

template <template <class> class V, class T>
V<T> hypot_body(V<T> x, V<T> y) {
  // Squares outside of 2^±(bias / 2) would overflow or lose bits: such arguments are scaled by a power of
  // two.
  constexpr bool kShort = std::same_as<T, f32>;
  constexpr T kUp = kShort ? T(0x1p100) : T(0x1p600), kDown = kShort ? T(0x1p-100) : T(0x1p-600);
  constexpr T kLarge = kShort ? T(0x1p61) : T(0x1p509), kSmall = kShort ? T(0x1p-50) : T(0x1p-480);
  const V<T> a = abs(x), b = abs(y);
  const V<T> high = max(a, b), low = min(a, b);
  const V<bool> large = high > V<T>(kLarge), small = high < V<T>(kSmall);
  const V<T> unit = select(large, V<T>(kDown), select(small, V<T>(kUp), V<T>(1)));
  const V<T> back = select(large, V<T>(kUp), select(small, V<T>(kDown), V<T>(1)));
  const V<T> p = high * unit, q = low * unit;
  const V<T> result = sqrt(fma(p, p, q * q)) * back;
  const V<bool> infinite = isinf(x) || isinf(y);
  return select(infinite, V<T>(kInfinity<T>), select(isnan(x) || isnan(y), x + y, result));
}

}  // namespace lockstep::math
