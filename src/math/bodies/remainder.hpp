// fmod: exact.
#pragma once

#include "math/bodies/arithmetic.hpp"

namespace lockstep::math {

/// r - trunc(r / d) d for r, d > 0 and r / d < 2^(mantissa - 2): the quotient is off by one at most, the rest
/// is exact.
template <template <class> class V, class T>
V<T> remainder_step(V<T> r, V<T> d) {
  const V<T> rest = fma(-trunc(r / d), d, r);
  const V<T> raised = select(rest < V<T>(0), rest + d, rest);
  return select(raised >= d, raised - d, raised);
}

template <template <class> class V, class T>
V<T> fmod_body(V<T> x, V<T> y) {
  using U = BitsOf<T>;
  using I = IntOf<T>;
  constexpr int kM = Format<T>::kMantissa;
  const V<T> a = abs(x), b = abs(y);
  const V<bool> valid = a < V<T>(kInfinity<T>) && b > V<T>(0);
  Mutable<V, T> r = select(valid, a, V<T>(0));
  const auto far = [&] { return V<T>(r) >= b * V<T>(T(U(1) << (kM - 3))); };
  // A far larger x loses mantissa - 4 bits a turn against the divisor lifted below it.
  when(valid && far(), [&] {
    constexpr T kLift = T(U(1) << (kM + 1));
    constexpr T kLeast = std::numeric_limits<T>::min();
    const V<T> divisor = select(b < V<T>(kLeast), b * V<T>(kLift), b);
    const V<I> of_divisor = bitcast<I>(divisor) >> V<I>(kM);
    repeat_while<V>(far, [&] {
      const V<bool> tiny = V<T>(r) < V<T>(kLeast);
      const V<I> exponent = bitcast<I>(select(tiny, V<T>(r) * V<T>(kLift), V<T>(r))) >> V<I>(kM);
      const V<I> lift = exponent - select(tiny, V<I>(kM + 1), V<I>(0)) - of_divisor - V<I>(kM - 4);
      r = remainder_step<V, T>(V<T>(r), scale<V, T>(divisor, to_float<V, T>(lift)));
    });
  });
  const V<T> rest =
      select(b < V<T>(kInfinity<T>), remainder_step<V, T>(V<T>(r), select(valid, b, V<T>(1))), a);
  const V<T> ordinary = select(V<T>(r) < b, V<T>(r), rest);
  return select(valid, copysign(ordinary, x), V<T>(kNan<T>));
}

}  // namespace lockstep::math
