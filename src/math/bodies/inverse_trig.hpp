// asin, acos, atan, atan2.
#pragma once

#include "math/bodies/arithmetic.hpp"

namespace lockstep::math {

/// asin(a) - a for |a| <= 1/2, with z = a².
template <template <class> class V, class T>
V<T> asin_tail(V<T> a, V<T> z) {
  return a * z * polynomial<V, T>(z, kAsin<T>);
}

template <template <class> class V, class T>
V<T> asin_body(V<T> x) {
  // Beyond 1/2: asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)).
  const V<T> magnitude = abs(x);
  const V<bool> outer = magnitude > V<T>(0.5);
  const V<T> z = select(outer, fma(V<T>(-0.5), magnitude, V<T>(0.5)), magnitude * magnitude);
  const V<T> a = select(outer, sqrt(z), magnitude);
  const V<T> tail = asin_tail<V, T>(a, z);
  const auto [high, low] = quick_sum<V, T>(V<T>(kHalfPi<T>[0]), V<T>(-2) * a);
  const V<T> reflected = high + (low + fma(V<T>(-2), tail, V<T>(kHalfPi<T>[1])));
  return copysign(select(outer, reflected, a + tail), x);
}

template <template <class> class V, class T>
V<T> acos_body(V<T> x) {
  const V<T> magnitude = abs(x);
  const V<bool> outer = magnitude > V<T>(0.5), negative = x < V<T>(0);
  const V<T> z = select(outer, fma(V<T>(-0.5), magnitude, V<T>(0.5)), magnitude * magnitude);
  const V<T> a = select(outer, sqrt(z), x);
  const V<T> tail = asin_tail<V, T>(a, z);
  const V<T> inner = V<T>(kHalfPi<T>[0]) - (a + (tail - V<T>(kHalfPi<T>[1])));
  const V<T> twice = V<T>(2) * (a + tail);
  const V<T> left = V<T>(kPi<T>[0]) - (fma(V<T>(2), a, fma(V<T>(2), tail, V<T>(-kPi<T>[1]))));
  return select(outer, select(negative, left, twice), inner);
}

/// atan(a) - a for 0 <= a <= 1.
template <template <class> class V, class T>
V<T> atan_tail(V<T> a) {
  const V<T> z = a * a;
  return a * z * polynomial<V, T>(z, kAtan<T>);
}

template <template <class> class V, class T>
V<T> atan_body(V<T> x) {
  const V<T> magnitude = abs(x);
  const V<bool> outer = magnitude > V<T>(1);
  const V<T> a = select(outer, V<T>(1) / magnitude, magnitude);
  const V<T> tail = atan_tail<V, T>(a);
  const auto [high, low] = quick_sum<V, T>(V<T>(kHalfPi<T>[0]), -a);
  const V<T> reflected = high + (low + (V<T>(kHalfPi<T>[1]) - tail));
  return copysign(select(outer, reflected, a + tail), x);
}

template <template <class> class V, class T>
V<T> atan2_body(V<T> y, V<T> x) {
  const V<T> ay = abs(y), ax = abs(x);
  const V<bool> steep = ay > ax, left = bitcast<IntOf<T>>(x) < V<IntOf<T>>(0);
  const V<T> numerator = min(ax, ay), denominator = max(ax, ay);
  const V<T> quotient = numerator / denominator;
  const V<T> a =
      select(denominator == V<T>(0), V<T>(0), select(numerator == V<T>(kInfinity<T>), V<T>(1), quotient));
  const V<T> tail = atan_tail<V, T>(a);
  // atan in the first octant, reflected at the diagonal and at the y axis: base ± (a + tail).
  const V<T> base = select(steep, V<T>(kHalfPi<T>[0]), select(left, V<T>(kPi<T>[0]), V<T>(0)));
  const V<T> base_low = select(steep, V<T>(kHalfPi<T>[1]), select(left, V<T>(kPi<T>[1]), V<T>(0)));
  const V<bool> minus = steep != left;
  const V<T> sa = select(minus, -a, a), st = select(minus, -tail, tail);
  const auto [high, low] = quick_sum<V, T>(base, sa);
  const V<T> value = high + (low + (st + base_low));
  return select(isnan(x) || isnan(y), x + y, copysign(value, y));
}

}  // namespace lockstep::math
