// erf.
#pragma once

#include "math/bodies/exp.hpp"

namespace lockstep::math {

/// From here on erf rounds to 1.
template <class T>
inline constexpr T kErfOne = 0;
template <>
inline constexpr f32 kErfOne<f32> = 4.0f;
template <>
inline constexpr f64 kErfOne<f64> = 6.0;

template <template <class> class V, class T>
V<T> erf_body(V<T> x) {
  const V<T> magnitude = abs(x);
  const V<T> small = fma(magnitude, polynomial<V, T>(magnitude * magnitude, kErfSmall<T>), magnitude);
  // erf = 1 - exp(log erfc).
  const V<T> u = min(magnitude, V<T>(kErfOne<T>)) - V<T>(1);
  const V<T> large = V<T>(1) - exp_scaled<V, T>(polynomial<V, T>(u, kErfLarge<T>), T(0));
  return copysign(select(magnitude < V<T>(1), small, large), x);
}

}  // namespace lockstep::math
