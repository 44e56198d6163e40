// Transforms by their definition, in long double: one sum per coefficient. Oracle of the cases; no engine.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <vector>

namespace lockstep::primitives::fft::reference {

using Number = std::complex<long double>;
using Field = std::vector<Number>;

/// Sums along one axis of an array (outer, n, inner); sign -1 forward, +1 back.
inline Field transform(const Field& x, int64_t outer, int64_t n, int64_t inner, int sign) {
  std::vector<Number> root;
  for (int64_t k = 0; k < n; ++k) {
    const long double turn =
        2 * std::numbers::pi_v<long double> * static_cast<long double>(k) / static_cast<long double>(n);
    root.emplace_back(std::cos(turn), static_cast<long double>(sign) * std::sin(turn));
  }
  Field result(x.size());
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < n; ++k)
      for (int64_t i = 0; i < inner; ++i) {
        Number sum = 0;
        for (int64_t j = 0; j < n; ++j)
          sum += x[static_cast<size_t>((o * n + j) * inner + i)] * root[static_cast<size_t>(j * k % n)];
        result[static_cast<size_t>((o * n + k) * inner + i)] = sum;
      }
  return result;
}

/// The axis cut to `entries`: of a half spectrum the first, else those of k = 0 … and … -1.
inline Field cut(const Field& x, int64_t outer, int64_t n, int64_t inner, int64_t entries, bool half) {
  Field result;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < n; ++k) {
      const bool kept = half ? k < entries : entries == n || k <= entries / 2 || k >= n - entries / 2;
      for (int64_t i = 0; kept && i < inner; ++i)
        result.push_back(x[static_cast<size_t>((o * n + k) * inner + i)]);
    }
  return result;
}

/// The full axis of n from a cut one: 0 where nothing was kept.
inline Field filled(const Field& x, int64_t outer, int64_t n, int64_t inner, int64_t entries) {
  Field result(static_cast<size_t>(outer * n * inner));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t e = 0; e < entries; ++e) {
      const int64_t k = entries == n || e <= entries / 2 ? e : e + n - entries;
      for (int64_t i = 0; i < inner; ++i)
        result[static_cast<size_t>((o * n + k) * inner + i)] =
            x[static_cast<size_t>((o * entries + e) * inner + i)];
    }
  return result;
}

/// The full last axis of n from the first `entries` coefficients of real fields' spectra, lines one behind the
/// other; the imaginary parts of k = 0 and n / 2 are taken as 0.
inline Field mirrored(const Field& x, int64_t lines, int64_t n, int64_t entries) {
  Field result(static_cast<size_t>(lines * n));
  for (int64_t l = 0; l < lines; ++l)
    for (int64_t k = 0; k < entries; ++k) {
      Number v = x[static_cast<size_t>(l * entries + k)];
      if (k == 0 || 2 * k == n) v = v.real();
      result[static_cast<size_t>(l * n + k)] = v;
      if (k > 0) result[static_cast<size_t>(l * n + n - k)] = std::conj(v);
    }
  return result;
}

}  // namespace lockstep::primitives::fft::reference
