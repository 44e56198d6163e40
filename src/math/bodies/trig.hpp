// sin, cos, tan with exact reduction of huge arguments.
#pragma once

#include "math/bodies/arithmetic.hpp"

namespace lockstep::math {

/// |x| = (quadrant + 4 n) pi/2 + r + low, |r| <= pi/4 (a little more where the quotient was rounded).
template <template <class> class V, class T>
struct Reduced {
  V<T> r, low;
  V<BitsOf<T>> quadrant;
};

/// Arguments below are reduced by products with parts of pi/2, above by the bits of 2/pi.
template <class T>
inline constexpr T kHugeAngle = 0;
template <>
inline constexpr f32 kHugeAngle<f32> = 0x1p15f;
template <>
inline constexpr f64 kHugeAngle<f64> = 0x1p28;

/// x = M 2^e with a whole M. The window of 2/pi's bits whose products with M lie below 4 and matter, times M,
/// gives the quadrant and the fraction; unsigned integer arithmetic only (Payne and Hanek 1983).
template <template <class> class V, class T>
Reduced<V, T> reduce_huge(V<T> x) {
  using U = BitsOf<T>;
  constexpr int kW = Format<T>::kWidth, kM = Format<T>::kMantissa;
  constexpr int kWordBits = kW == 32 ? 5 : 6;
  constexpr auto& kWords = kTwoOverPiBits<U>;
  const V<U> bits = bitcast<U>(x);
  const V<U> mantissa = (bits & V<U>((U(1) << kM) - 1)) | V<U>(U(1) << kM);
  const V<U> exponent = (bits >> V<U>(kM)) & V<U>(2 * Format<T>::kBias + 1);
  // The window begins at the bit of weight 2^1 of the product: bit e + 1 behind the point, e = exponent -
  // bias - mantissa bits.
  const V<U> first = exponent - V<U>(U(Format<T>::kBias + kM + 2 - kW));
  const V<U> word = first >> V<U>(kWordBits), shift = first & V<U>(kW - 1);
  V<U> w0 = kWords[0], w1 = kWords[1], w2 = kWords[2], w3 = kWords[3];
  for (size_t i = 1; i + 3 < kWords.size(); ++i) {
    const V<bool> here = word == V<U>(U(i));
    w0 = select(here, V<U>(kWords[i]), w0);
    w1 = select(here, V<U>(kWords[i + 1]), w1);
    w2 = select(here, V<U>(kWords[i + 2]), w2);
    w3 = select(here, V<U>(kWords[i + 3]), w3);
  }
  const V<U> rest = V<U>(kW - 1) - shift;
  const auto join = [&](V<U> high, V<U> low) { return (high << shift) | ((low >> V<U>(1)) >> rest); };
  const V<U> a = join(w0, w1), b = join(w1, w2), c = join(w2, w3);
  const V<U> b_low = mantissa * b;
  const V<U> middle = b_low + umulhi(mantissa, c);
  const V<U> carry = select(middle < b_low, V<U>(1), V<U>(0));
  const V<U> top = mantissa * a + umulhi(mantissa, b) + carry;

  // top:middle = quadrant (2 bits) and fraction of a quarter turn; a fraction of 1/2 or more counts from the
  // next quadrant.
  const V<U> fraction = (top << V<U>(2)) | (middle >> V<U>(kW - 2));
  const V<U> over = fraction >> V<U>(kW - 1);
  const V<U> flip = V<U>(0) - over;
  const V<U> high = fraction ^ flip, low = (middle << V<U>(2)) ^ flip;
  const V<U> zeros = clz(high);
  const V<U> norm = (high << zeros) | ((low >> V<U>(1)) >> (V<U>(kW - 1) - zeros));
  const V<U> norm_low = low << zeros;
  constexpr int kCut = kW - kM - 1;  // bits of a word that a T does not hold
  const auto number = [](V<U> u) { return cast<T>(cast<IntOf<T>>(u)); };
  const V<T> h = number(norm >> V<U>(kCut));
  const V<T> l = number(((norm & V<U>((U(1) << kCut) - 1)) << V<U>(kM + 1 - kCut)) |
                        (norm_low >> V<U>(kW - kM - 1 + kCut)));
  // h + l 2^-(mantissa + 1) is the fraction in units of 2^-(mantissa + 1 + zeros).
  const V<T> l_scaled = l * V<T>(T(1) / T(U(1) << (kM + 1)));
  const auto [p, p_error] = product<V, T>(h, V<T>(kHalfPi<T>[0]));
  const V<T> p_low = fma(h, V<T>(kHalfPi<T>[1]), fma(l_scaled, V<T>(kHalfPi<T>[0]), p_error));
  const V<T> unit = power_of_two<V, T>(-(number(zeros) + V<T>(kM + 1)));
  return {negate_if_odd<V, T>(p * unit, over), negate_if_odd<V, T>(p_low * unit, over),
          (top >> V<U>(kW - 2)) + over};
}

template <template <class> class V, class T>
Reduced<V, T> reduce(V<T> magnitude) {
  using U = BitsOf<T>;
  const V<T> n = rint(magnitude * V<T>(kTwoOverPi<T>[0]));
  const V<T> first = fma(n, V<T>(-kHalfPi<T>[0]), magnitude);  // exact
  const auto [p, p_error] = product<V, T>(n, V<T>(-kHalfPi<T>[1]));
  const auto [second, rest] = exact_sum<V, T>(first, p);
  Mutable<V, T> r = second;
  Mutable<V, T> low = fma(n, V<T>(-kHalfPi<T>[2]), rest + p_error);
  Mutable<V, U> quadrant = whole_bits<V, T>(n);
  when(magnitude >= V<T>(kHugeAngle<T>), [&] {
    const auto huge = reduce_huge<V, T>(magnitude);
    r = huge.r;
    low = huge.low;
    quadrant = huge.quadrant;
  });
  const V<T> r_all = r;
  return {select(magnitude < V<T>(kInfinity<T>), r_all, V<T>(kNan<T>)), V<T>(low), V<U>(quadrant)};
}

/// sin(r + low) and cos(r + low).
template <template <class> class V, class T>
struct SinCos {
  V<T> sin, cos;
};
template <template <class> class V, class T>
SinCos<V, T> sin_cos(V<T> r, V<T> low) {
  const V<T> z = r * r;
  const V<T> half = V<T>(0.5) * z;
  const V<T> w = V<T>(1) - half;
  const V<T> s = r + fma(r * z, polynomial<V, T>(z, kSin<T>), low * w);
  const V<T> c = w + (((V<T>(1) - w) - half) + fma(z * z, polynomial<V, T>(z, kCos<T>), -(r * low)));
  return {s, c};
}

/// The sine and the cosine of the angle x from those of its reduced angle.
template <template <class> class V, class T>
V<T> sine_of(SinCos<V, T> reduced, V<BitsOf<T>> quadrant, V<T> x) {
  using U = BitsOf<T>;
  const V<T> value = select((quadrant & V<U>(1)) == V<U>(0), reduced.sin, reduced.cos);
  return multiply_sign<V, T>(negate_if_odd<V, T>(value, quadrant >> V<U>(1)), x);
}
template <template <class> class V, class T>
V<T> cosine_of(SinCos<V, T> reduced, V<BitsOf<T>> quadrant) {
  using U = BitsOf<T>;
  const V<T> value = select((quadrant & V<U>(1)) == V<U>(0), reduced.cos, reduced.sin);
  return negate_if_odd<V, T>(value, (quadrant + V<U>(1)) >> V<U>(1));
}

template <template <class> class V, class T>
V<T> sin_body(V<T> x) {
  const auto [r, low, quadrant] = reduce<V, T>(abs(x));
  return sine_of<V, T>(sin_cos<V, T>(r, low), quadrant, x);
}
template <template <class> class V, class T>
V<T> cos_body(V<T> x) {
  const auto [r, low, quadrant] = reduce<V, T>(abs(x));
  return cosine_of<V, T>(sin_cos<V, T>(r, low), quadrant);
}
/// Both, with one reduction.
template <template <class> class V, class T>
SinCos<V, T> sincos_body(V<T> x) {
  const auto [r, low, quadrant] = reduce<V, T>(abs(x));
  const auto reduced = sin_cos<V, T>(r, low);
  return {sine_of<V, T>(reduced, quadrant, x), cosine_of<V, T>(reduced, quadrant)};
}

template <template <class> class V, class T>
V<T> tan_body(V<T> x) {
  using U = BitsOf<T>;
  const auto [r, low, quadrant] = reduce<V, T>(abs(x));
  const V<T> z = r * r;
  const V<T> tail = fma(r * z, polynomial<V, T>(z, kTan<T>), fma(low, z, low));
  const auto [t, t_low] = quick_sum<V, T>(r, tail);
  // -1 / (t + t_low) with one correction.
  const V<T> w = V<T>(-1) / t;
  const V<T> error = fma(w, t_low, fma(w, t, V<T>(1)));
  const V<T> cotangent = fma(w, error, w);
  return multiply_sign<V, T>(select((quadrant & V<U>(1)) == V<U>(0), t, cotangent), x);
}

}  // namespace lockstep::math
