// a b + c with one rounding. Those of Debian's C library for wasm32 round twice where a result is subnormal or a summand
// far smaller than the other.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lockstep::platform {

namespace {

__extension__ using Wide = unsigned __int128;
constexpr int kTop = 124;  // of a magnitude: room for a carry, and for 18 zeros below a product of 106 bits

struct Magnitude {
  Wide bits;  // value: bits * 2^exponent
  int exponent;
};

int top_of(Wide bits) {
  const uint64_t high = uint64_t(bits >> 64), low = uint64_t(bits);
  return high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll(low);
}
Magnitude normalised(Wide bits, int exponent) {
  const int by = kTop - top_of(bits);
  return {bits << by, exponent - by};
}
/// A finite number other than 0 as a whole number times a power of two.
template <class T>
Magnitude split(T x) {
  int exponent;
  const T fraction = std::frexp(std::fabs(x), &exponent);
  constexpr int kDigits = std::numeric_limits<T>::digits;
  return {Wide(uint64_t(std::ldexp(fraction, kDigits))), exponent - kDigits};
}
/// Shifted right; what falls off sets the last bit.
Wide jammed(Wide bits, int by) {
  if (by > kTop) return 1;
  return by == 0 ? bits : bits >> by | Wide((bits << (128 - by)) != 0);
}

/// bits * 2^exponent to nearest, halves to even.
template <class T>
T rounded(Wide bits, int exponent) {
  using Limits = std::numeric_limits<T>;
  constexpr int kLeast = Limits::min_exponent - Limits::digits;  // of the last bit of a subnormal number
  const int last = std::max(top_of(bits) + exponent - Limits::digits + 1, kLeast), by = last - exponent;
  if (by <= 0) return std::ldexp(T(uint64_t(bits)), exponent);
  if (by > 127) return 0;
  Wide kept = bits >> by;
  const Wide rest = bits - (kept << by), half = Wide(1) << (by - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  return std::ldexp(T(uint64_t(kept)), last);
}

template <class T>
T fused(T x, T y, T z) {
  if (!std::isfinite(x) || !std::isfinite(y) || x == 0 || y == 0) return x * y + z;
  if (!std::isfinite(z)) return z;
  if (z == 0) return x * y;
  const Magnitude a = split(x), b = split(y), c = split(z);
  Magnitude product = normalised(a.bits * b.bits, a.exponent + b.exponent),
            sum = normalised(c.bits, c.exponent);
  const bool negative = std::signbit(x) != std::signbit(y), other = std::signbit(z);
  const int exponent = std::max(product.exponent, sum.exponent);
  product.bits = jammed(product.bits, exponent - product.exponent);
  sum.bits = jammed(sum.bits, exponent - sum.exponent);
  if (negative == other) {
    const T r = rounded<T>(product.bits + sum.bits, exponent);
    return negative ? -r : r;
  }
  if (product.bits == sum.bits) return 0;
  const bool greater = product.bits > sum.bits;
  const T r = rounded<T>(greater ? product.bits - sum.bits : sum.bits - product.bits, exponent);
  return (greater ? negative : other) ? -r : r;
}

}  // namespace

}  // namespace lockstep::platform

extern "C" {
float fmaf(float x, float y, float z) { return lockstep::platform::fused(x, y, z); }
double fma(double x, double y, double z) { return lockstep::platform::fused(x, y, z); }
}
