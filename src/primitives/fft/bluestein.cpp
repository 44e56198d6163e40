#include "primitives/fft/bluestein.hpp"

#include <bit>
#include <cstddef>
#include <utility>

#include "primitives/fft/twiddles.hpp"

namespace lockstep::primitives::fft {

namespace {

using std::size_t;

Root chirp(int64_t j, int64_t n) {
  // j^2 modulo 2 n without overflow: j < n < 2^31.
  return root_of_unity(int64_t(uint64_t(j) * uint64_t(j) % uint64_t(2 * n)), 2 * n);
}

/// The values in bit-reversed order are transformed in place.
void transform(std::vector<Root>& x) {
  const size_t n = x.size();
  for (size_t i = 1, mirror = 0; i < n; ++i) {
    size_t bit = n / 2;
    for (; mirror & bit; bit /= 2) mirror ^= bit;
    mirror |= bit;
    if (i < mirror) std::swap(x[i], x[mirror]);
  }
  for (size_t span = 2; span <= n; span *= 2)
    for (size_t k = 0; k < span / 2; ++k) {
      const Root w = root_of_unity(int64_t(k), int64_t(span));
      for (size_t at = k; at < n; at += span) {
        const Root u = x[at], b = x[at + span / 2];
        const Root v{w.re * b.re - w.im * b.im, w.re * b.im + w.im * b.re};
        x[at] = {u.re + v.re, u.im + v.im};
        x[at + span / 2] = {u.re - v.re, u.im - v.im};
      }
    }
}

template <class T>
std::vector<T> parts_of(const std::vector<Root>& values) {
  std::vector<T> parts;
  parts.reserve(2 * values.size());
  for (const Root& w : values) {
    parts.push_back(rounded<T>(w.re));
    parts.push_back(rounded<T>(w.im));
  }
  return parts;
}

}  // namespace

int64_t bluestein_length(int64_t n) { return int64_t(std::bit_ceil(uint64_t(2 * n - 1))); }

template <class T>
std::vector<T> bluestein_chirp(int64_t n) {
  std::vector<Root> values;
  for (int64_t j = 0; j < n; ++j) values.push_back(chirp(j, n));
  return parts_of<T>(values);
}

template <class T>
std::vector<T> bluestein_filter(int64_t n) {
  const int64_t length = bluestein_length(n);
  std::vector<Root> values(static_cast<size_t>(length));
  for (int64_t j = 0; j < n; ++j) {
    const Root w = chirp(j, n);
    values[size_t(j)] = values[size_t((length - j) % length)] = {w.re, -w.im};
  }
  transform(values);
  for (Root& v : values) v = {v.re / double(length), v.im / double(length)};
  return parts_of<T>(values);
}

template std::vector<float> bluestein_chirp(int64_t);
template std::vector<double> bluestein_chirp(int64_t);
template std::vector<float> bluestein_filter(int64_t);
template std::vector<double> bluestein_filter(int64_t);

}  // namespace lockstep::primitives::fft
