// sinh, cosh, tanh, sigmoid, softplus.
#pragma once

#include "math/bodies/exp.hpp"
#include "math/bodies/log.hpp"

namespace lockstep::math {

template <template <class> class V, class T>
V<T> sinh_body(V<T> x) {
  const V<T> magnitude = abs(x);
  const V<T> z = magnitude * magnitude;
  const V<T> small = magnitude + magnitude * z * polynomial<V, T>(z, kSinh<T>);
  const V<T> half = exp_scaled<V, T>(magnitude, T(-1));
  const V<T> large = half - V<T>(0.25) / half;
  return copysign(select(magnitude < V<T>(1), small, large), x);
}

template <template <class> class V, class T>
V<T> cosh_body(V<T> x) {
  const V<T> half = exp_scaled<V, T>(abs(x), T(-1));
  return half + V<T>(0.25) / half;
}

template <template <class> class V, class T>
V<T> tanh_body(V<T> x) {
  const V<T> magnitude = abs(x);
  const V<T> z = magnitude * magnitude;
  const V<T> small = magnitude + magnitude * z * polynomial<V, T>(z, kTanh<T>);
  const V<T> large = V<T>(1) - V<T>(2) / (exp_scaled<V, T>(V<T>(2) * magnitude, T(0)) + V<T>(1));
  return copysign(select(magnitude < V<T>(0.5625), small, large), x);
}

template <template <class> class V, class T>
V<T> sigmoid_body(V<T> x) {
  // e = exp(-|x|): 1 / (1 + e) on the right, e / (1 + e) on the left. e keeps its rounding error.
  const auto [n, r, tail] = exp_parts<V, T>(-abs(x));
  const auto [q, q_low] = quick_sum<V, T>(r, tail);
  const auto [p, p_error] = quick_sum<V, T>(V<T>(1), q);
  const V<T> e = scale<V, T>(p, n), e_low = scale<V, T>(p_error + q_low, n);
  const auto [d, d_error] = quick_sum<V, T>(V<T>(1), e);
  const V<T> inverse = V<T>(1) / d;
  const V<bool> right = x >= V<T>(0);
  const V<T> top = select(right, V<T>(1), e), top_low = select(right, V<T>(0), e_low);
  const V<T> quotient = top * inverse;
  const V<T> rest = fma(-quotient, d, top) + fma(-quotient, d_error + e_low, top_low);
  return fma(rest, inverse, quotient);
}

template <template <class> class V, class T>
V<T> softplus_body(V<T> x) {
  return max(x, V<T>(0)) + log1p_body<V, T>(exp_scaled<V, T>(-abs(x), T(0)));
}

}  // namespace lockstep::math
