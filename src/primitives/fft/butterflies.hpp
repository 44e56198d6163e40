// Complex values of a lane and the stages of a transform on them, at trace time. Forward only: the inverse is
// the forward transform of values whose parts have changed places (`swapped`), which costs nothing.
#pragma once

#include <utility>
#include <vector>

#include "lockstep/kernel/kernel.hpp"
#include "primitives/fft/twiddles.hpp"

namespace lockstep::primitives::fft {

/// A complex value of one lane.
template <class T>
struct Complex {
  Val<T> re, im;
  /// Known to be 0 while tracing: folds with it are left out (what is computed of a -0 may then have the other
  /// sign).
  bool zero = false;
};
template <class T>
using ComplexValues = std::vector<Complex<T>>;

template <class T>
Complex<T> swapped(const Complex<T>& a) {
  return {a.im, a.re, a.zero};
}
template <class T>
Complex<T> conjugate(const Complex<T>& a) {
  return {a.re, -a.im};
}
/// w a: two products, the second by fma.
template <class T>
Complex<T> multiply(const Complex<T>& w, const Complex<T>& a) {
  return {fma(-w.im, a.im, w.re * a.re), fma(w.im, a.re, w.re * a.im)};
}
template <class T>
Complex<T> constant_root(int64_t k, int64_t n) {
  const Root w = root_of_unity(k, n);
  return {Val<T>(rounded<T>(w.re)), Val<T>(rounded<T>(w.im))};
}

/// u, v = u + w v, u - w v: six fma.
template <class T>
void fold(Complex<T>& u, Complex<T>& v, const Complex<T>& w) {
  if (v.zero) return void(v = u);
  if (u.zero) {
    u = multiply<T>(w, v);
    v = {-u.re, -u.im};
    return;
  }
  const Val<T> re = fma(-w.im, v.im, fma(w.re, v.re, u.re)), im = fma(w.im, v.re, fma(w.re, v.im, u.im));
  v = {fma(T(2), u.re, -re), fma(T(2), u.im, -im)};
  u = {re, im};
}
/// The same for w = 1.
template <class T>
void fold(Complex<T>& u, Complex<T>& v) {
  if (v.zero) return void(v = u);
  if (u.zero) {
    u = v;
    v = {-u.re, -u.im};
    return;
  }
  const Complex<T> a = u, b = v;
  u = {a.re + b.re, a.im + b.im};
  v = {a.re - b.re, a.im - b.im};
}

/// log2(size) stages of spans 2 before, 4 before … size * before on values in natural order. `first`: before
/// = 1 (the roots are constants). `root(at, of)` gives w(k0 + at * before, of * before), where k0 is the
/// number of the butterfly among those `before`; it is requested at < max(1, of / 4) only.
template <class T, class Roots>
void power_of_two_stages(ComplexValues<T>& y, bool first, Roots root) {
  const int size = int(y.size());
  for (int i = 0, mirror = 0; i < size; ++i) {  // into bit-reversed order
    if (i < mirror) std::swap(y[size_t(i)], y[size_t(mirror)]);
    int bit = size / 2;
    for (; bit > 0 && (mirror & bit); bit /= 2) mirror ^= bit;
    mirror |= bit;
  }
  for (int span = 2; span <= size; span *= 2)
    for (int k = 0; k < span / 2; ++k) {
      const bool turned = span > 2 && k >= span / 4;  // w(k) = -i w(k - span/4)
      const auto pair = [&](int at) { return std::pair<size_t, size_t>(at + k, at + k + span / 2); };
      if (first && span <= 4) {
        for (int at = 0; at < size; at += span) {
          const auto [u, v] = pair(at);
          if (turned) y[v] = {y[v].im, -y[v].re, y[v].zero};
          fold(y[u], y[v]);
        }
        continue;
      }
      const int direct = turned ? k - span / 4 : k;
      Complex<T> w = first ? constant_root<T>(direct, span) : root(direct, span);
      if (turned) w = {w.im, -w.re};
      for (int at = 0; at < size; at += span) {
        const auto [u, v] = pair(at);
        fold(y[u], y[v], w);
      }
    }
}

/// The transform of an odd number of values; `root(q)` gives w(q k0, size * before). Not asked where `first`.
template <class T, class Roots>
void odd_stage(ComplexValues<T>& y, bool first, Roots root) {
  const int size = int(y.size()), half = size / 2;
  if (!first)
    for (int q = 1; q < size; ++q) y[size_t(q)] = multiply<T>(root(q), y[size_t(q)]);
  ComplexValues<T> sum, difference;
  for (int q = 1; q <= half; ++q) {
    const Complex<T>&a = y[size_t(q)], &b = y[size_t(size - q)];
    sum.push_back({a.re + b.re, a.im + b.im});
    difference.push_back({a.re - b.re, a.im - b.im});
  }
  const Complex<T> zeroth = y[0];
  for (const Complex<T>& s : sum) y[0] = {y[0].re + s.re, y[0].im + s.im};
  for (int k = 1; k <= half; ++k) {
    Complex<T> even = zeroth;
    for (int q = 1; q <= half; ++q) {
      const T cosine = rounded<T>(root_of_unity(q * k, size).re);
      const Complex<T>& s = sum[size_t(q - 1)];
      even = {fma(cosine, s.re, even.re), fma(cosine, s.im, even.im)};
    }
    Complex<T> up = even, down = even;  // even -+ i sine difference
    for (int q = 1; q <= half; ++q) {
      const T sine = rounded<T>(root_of_unity(q * k, size).im);
      const Complex<T>& d = difference[size_t(q - 1)];
      up = {fma(-sine, d.im, up.re), fma(sine, d.re, up.im)};
      down = {fma(sine, d.im, down.re), fma(-sine, d.re, down.im)};
    }
    y[size_t(k)] = up;
    y[size_t(size - k)] = down;
  }
}

/// One coefficient of a real transform of 2 n points from Z, the complex transform of its points taken in
/// pairs: a = Z[k], b = Z[n - k] (Z[n] = Z[0]), w = w(k, 2 n).
template <class T>
Complex<T> real_coefficient(const Complex<T>& a, const Complex<T>& b, const Complex<T>& w) {
  const Complex<T> even{T(0.5) * (a.re + b.re), T(0.5) * (a.im - b.im)},
      odd{T(0.5) * (a.im + b.im), T(0.5) * (b.re - a.re)};
  return {fma(-w.im, odd.im, fma(w.re, odd.re, even.re)), fma(w.im, odd.re, fma(w.re, odd.im, even.im))};
}
/// The way back: value k of the complex sequence whose inverse transform holds the real points in pairs; a =
/// X[k], b = X[n - k].
template <class T>
Complex<T> paired_coefficient(const Complex<T>& a, const Complex<T>& b, const Complex<T>& w) {
  const Complex<T> even{a.re + b.re, a.im - b.im}, odd{a.re - b.re, a.im + b.im};
  // even + i conj(w) odd
  return {fma(w.im, odd.re, fma(-w.re, odd.im, even.re)), fma(w.im, odd.im, fma(w.re, odd.re, even.im))};
}

}  // namespace lockstep::primitives::fft
