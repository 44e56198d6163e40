// Numbers of 106 bits as sums of two doubles, by additions and products alone: tables are rounded from them to the same
// bits regardless of long double and the C library. No intermediate result overflows or is subnormal.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace lockstep::primitives::fft {

/// hi is the sum rounded to a double.
struct DoubleDouble {
  double hi = 0, lo = 0;
  DoubleDouble operator-() const { return {-hi, -lo}; }
};

namespace exact {
/// a + b, |a| >= |b| or a = 0.
inline DoubleDouble ordered_sum(double a, double b) {
  const double s = a + b;
  return {s, b - (s - a)};
}
inline DoubleDouble sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
/// Dekker's product.
inline DoubleDouble product(double a, double b) {
  const auto high = [](double x) {
    const double c = 134217729.0 * x;
    return c - (c - x);
  };
  const double p = a * b, ah = high(a), al = a - ah, bh = high(b), bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}
}  // namespace exact

inline DoubleDouble operator+(const DoubleDouble& a, const DoubleDouble& b) {
  DoubleDouble s = exact::sum(a.hi, b.hi);
  const DoubleDouble t = exact::sum(a.lo, b.lo);
  s = exact::ordered_sum(s.hi, s.lo + t.hi);
  return exact::ordered_sum(s.hi, s.lo + t.lo);
}
inline DoubleDouble operator-(const DoubleDouble& a, const DoubleDouble& b) { return a + -b; }
inline DoubleDouble operator*(const DoubleDouble& a, const DoubleDouble& b) {
  const DoubleDouble p = exact::product(a.hi, b.hi);
  return exact::ordered_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}
inline DoubleDouble operator/(const DoubleDouble& a, double b) {
  const double q = a.hi / b;
  const DoubleDouble rest = a - exact::product(q, b);
  const double r = rest.hi / b;
  const DoubleDouble left = rest - exact::product(r, b);
  return DoubleDouble{q, 0} + exact::sum(r, left.hi / b);
}

/// Rounded once.
template <class T>
T rounded(const DoubleDouble& x) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  if constexpr (std::is_same_v<T, double>) return x.hi;
  // A double halfway between two floats: lo decides.
  constexpr uint64_t kBelow = (uint64_t(1) << 29) - 1, kHalf = uint64_t(1) << 28;
  const bool halfway = (std::bit_cast<uint64_t>(x.hi) & kBelow) == kHalf;
  if (!halfway || x.lo == 0) return T(x.hi);
  return T(std::nextafter(x.hi, x.lo > 0 ? HUGE_VAL : -HUGE_VAL));
}

}  // namespace lockstep::primitives::fft
