// log, log2, log10, log1p.
#pragma once

#include "math/bodies/arithmetic.hpp"

namespace lockstep::math {

/// x = 2^k (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); for x > 0 and finite.
template <template <class> class V, class T>
struct LogParts {
  V<T> k, f;
};
template <class T>
inline constexpr T kRootHalf = T(0.707106781186547524400844362104849);

template <template <class> class V, class T>
LogParts<V, T> log_parts(V<T> x) {
  using I = IntOf<T>;
  constexpr int kM = Format<T>::kMantissa;
  constexpr T kLift = T(I(1) << (kM + 2));
  const V<bool> tiny = x < V<T>(std::numeric_limits<T>::min());
  const V<I> bits = bitcast<I>(select(tiny, x * V<T>(kLift), x));
  const V<I> above = bits - V<I>(std::bit_cast<I>(kRootHalf<T>));
  const V<I> k = above >> V<I>(kM);
  const V<T> m = bitcast<T>(bits - (k << V<I>(kM)));
  const V<T> exponent = to_float<V, T>(k) - select(tiny, V<T>(kM + 2), V<T>(0));
  return {exponent, m - V<T>(1)};
}

/// The values at and outside of the edge of the domain: log 0 = -inf, log inf = inf, log of negatives = NaN.
template <template <class> class V, class T>
V<T> log_edges(V<T> x, V<T> result) {
  const V<T> edge = select(x == V<T>(0), V<T>(-kInfinity<T>), select(x > V<T>(0), x, V<T>(kNan<T>)));
  return select(x > V<T>(0) && x < V<T>(kInfinity<T>), result, select(isnan(x), x, edge));
}

/// log(1 + f) - f, f in [sqrt(1/2) - 1, sqrt(2) - 1].
template <template <class> class V, class T>
V<T> log_tail(V<T> f) {
  const V<T> ff = f * f;
  if constexpr (std::same_as<T, f32>) {
    return fma(ff * f, polynomial<V, T>(f, kLog<T>), V<T>(-0.5) * ff);
  } else {
    // With s = f / (2 + f): log(1 + f) = 2 s + s R and 2 s = f - f²/2 + s f²/2.
    const V<T> half = V<T>(0.5) * ff;
    const V<T> s = f / (V<T>(2) + f);
    const V<T> z = s * s;
    return fma(s, fma(z, polynomial<V, T>(z, kLogRatio<T>), half), -half);
  }
}
/// k log 2 + log(1 + f).
template <template <class> class V, class T>
V<T> log_sum(V<T> k, V<T> f) {
  const V<T> tail = fma(k, V<T>(kLn2<T>[1]), log_tail<V, T>(f));
  return fma(k, V<T>(kLn2<T>[0]), f + tail);
}

template <template <class> class V, class T>
V<T> log_body(V<T> x) {
  const auto [k, f] = log_parts<V, T>(x);
  return log_edges<V, T>(x, log_sum<V, T>(k, f));
}

/// log(1 + f) as a pair, relative error about 2^-60 (f64).
template <template <class> class V, class T>
Pair<V, T> log_pair(V<T> f) {
  const auto [half, half_low] = product<V, T>(V<T>(0.5) * f, f);
  const V<T> s = f / (V<T>(2) + f);
  const V<T> z = s * s;
  const V<T> rest = s * fma(z, polynomial<V, T>(z, kLogRatio<T>), half);
  const auto [a, a_low] = quick_sum<V, T>(f, -half);
  return quick_sum<V, T>(a, (a_low - half_low) + rest);
}

/// k base + log(1 + f) scale, where base = log 2 * scale as parts.
template <template <class> class V, class T, size_t N>
V<T> log_to_base(V<T> k, V<T> f, const std::array<T, N>& polynomial_f32, const std::array<T, 2>& scale,
                 const std::array<T, 2>& base) {
  if constexpr (std::same_as<T, f32>) {
    // f c + f² P(f), the constant c in two parts.
    const V<T> tail = fma(f, V<T>(scale[1]), f * f * polynomial<V, T>(f, polynomial_f32));
    return fma(k, V<T>(base[0]), fma(f, V<T>(scale[0]), fma(k, V<T>(base[1]), tail)));
  } else {
    const auto [high, low] = log_pair<V, T>(f);
    const auto [p, p_low] = product<V, T>(high, V<T>(scale[0]));
    const V<T> tail = fma(high, V<T>(scale[1]), fma(low, V<T>(scale[0]), p_low));
    const auto [whole, whole_low] = product<V, T>(k, V<T>(base[0]));
    const auto [sum, sum_low] = quick_sum<V, T>(whole, p);
    return sum + (sum_low + (tail + fma(k, V<T>(base[1]), whole_low)));
  }
}

template <template <class> class V, class T>
V<T> log2_body(V<T> x) {
  const auto [k, f] = log_parts<V, T>(x);
  return log_edges<V, T>(x, log_to_base<V, T>(k, f, kLog2<T>, kLog2e<T>, {T(1), T(0)}));
}
template <template <class> class V, class T>
V<T> log10_body(V<T> x) {
  const auto [k, f] = log_parts<V, T>(x);
  return log_edges<V, T>(x, log_to_base<V, T>(k, f, kLog10<T>, kLog10e<T>, kLog10Of2<T>));
}

template <template <class> class V, class T>
V<T> log1p_body(V<T> x) {
  const V<T> u = V<T>(1) + x;
  const auto [k, f_rounded] = log_parts<V, T>(u);
  // (1 + x) 2^-k - 1 with one rounding; where x is large the rounding of u does not matter.
  const V<bool> large = x > V<T>(T(BitsOf<T>(1) << (Format<T>::kMantissa + 3)));
  const V<T> unit = power_of_two<V, T>(select(large, V<T>(0), -k));
  const V<T> f = select(large, f_rounded, fma(x, unit, unit - V<T>(1)));
  const V<T> result = log_sum<V, T>(k, f);
  const V<bool> small = abs(x) < V<T>(T(1) / T(BitsOf<T>(1) << (Format<T>::kMantissa + 2)));
  return select(small, x, log_edges<V, T>(u, result));
}

}  // namespace lockstep::math
