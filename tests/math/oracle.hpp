// Reference values of the elementary functions in a wider type, error in units in the last place, and
// samplers.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/kernel/math.hpp"
#include "math/quad.hpp"

namespace lockstep::testing {

__extension__ using Quad = __float128;

/// The type in which results for T are judged.
template <class T>
struct WiderOf;
template <>
struct WiderOf<float> {
  using type = double;
};
template <>
struct WiderOf<double> {
  using type = Quad;
};
template <class T>
using Wider = typename WiderOf<T>::type;

// The functions that the column `host` of ops.def uses, on double and on 113 bits.
namespace wide {
inline double real(double a) { return a; }
inline Quad real(Quad a) { return a; }
inline bool signbit(double a) { return std::signbit(a); }
inline bool signbit(Quad a) { return signbitq(a) != 0; }
#define LOCKSTEP_WIDE1(name)                            \
  inline double name(double a) { return std::name(a); } \
  inline Quad name(Quad a) { return name##q(a); }
#define LOCKSTEP_WIDE2(name)                                         \
  inline double name(double a, double b) { return std::name(a, b); } \
  inline Quad name(Quad a, Quad b) { return name##q(a, b); }
LOCKSTEP_WIDE1(acos)
LOCKSTEP_WIDE1(asin)
LOCKSTEP_WIDE1(atan)
LOCKSTEP_WIDE2(atan2)
LOCKSTEP_WIDE1(cbrt)
LOCKSTEP_WIDE1(ceil)
LOCKSTEP_WIDE1(cos)
LOCKSTEP_WIDE1(cosh)
LOCKSTEP_WIDE1(erf)
LOCKSTEP_WIDE1(exp)
LOCKSTEP_WIDE1(exp2)
LOCKSTEP_WIDE1(expm1)
LOCKSTEP_WIDE1(floor)
LOCKSTEP_WIDE2(fmod)
LOCKSTEP_WIDE2(hypot)
LOCKSTEP_WIDE1(log)
LOCKSTEP_WIDE1(log10)
LOCKSTEP_WIDE1(log1p)
LOCKSTEP_WIDE1(log2)
LOCKSTEP_WIDE2(pow)
LOCKSTEP_WIDE1(rint)
LOCKSTEP_WIDE1(sin)
LOCKSTEP_WIDE1(sinh)
LOCKSTEP_WIDE1(sqrt)
LOCKSTEP_WIDE1(tan)
LOCKSTEP_WIDE1(tanh)
LOCKSTEP_WIDE1(trunc)
#undef LOCKSTEP_WIDE1
#undef LOCKSTEP_WIDE2
template <class T>
T truth(bool condition) {
  return T(condition ? 1 : 0);
}

template <class T>
T elementary(ir::Op op, T a, T b) {
  switch (op) {
#define LOCKSTEP_MATH(name, arity, cuda, wgsl, host, ...) \
  case ir::Op::name: return host;
#include "lockstep/ir/ops.def"
    default: throw InternalError("no such elementary function", ir::name(op), "a row LOCKSTEP_MATH");
  }
}
}  // namespace wide

/// The elementary function `op` as ops.def defines it for the host, in a wide type.
template <class W>
W oracle(ir::Op op, W a, W b) {
  return wide::elementary<W>(op, a, b);
}

/// |got - want| in units in the last place of `want` as a T. NaN and infinities count 0 where both agree.
template <class T>
double ulp_error(T got, Wider<T> want) {
  using W = Wider<T>;
  using Limits = std::numeric_limits<T>;
  if (want != want) return got != got ? 0 : std::numeric_limits<double>::infinity();
  if (got != got) return std::numeric_limits<double>::infinity();
  const T rounded = T(want);
  if (got == rounded) {
    if (std::isinf(got) || want == 0) return 0;
  }
  const W size = want < 0 ? -want : want;
  const W top = W(Limits::max());
  const W value =
      std::isinf(got) ? (got > 0 ? top * 2 : -top * 2) : W(got);  // an overflow counts as twice the largest
  int exponent = std::ilogb(size > top ? Limits::max() : T(size));
  if (W(std::ldexp(T(1), exponent)) > size) --exponent;  // T(size) was rounded up over a power of two
  exponent = std::max(exponent, Limits::min_exponent - 1);
  const W unit = W(std::ldexp(1.0L, exponent - Limits::digits + 1));
  const W difference = value - want;
  return double((difference < 0 ? -difference : difference) / unit);
}

/// Error that src/math promises.
inline double promised_ulp(ir::Op op) { return op == ir::Op::fmod ? 0 : op == ir::Op::pow ? 4 : 2; }

/// Draws operands: any bit pattern, or a magnitude near those where the function does something.
template <class T>
class Sampler {
 public:
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  Sampler(ir::Op op, uint64_t seed) : op_(op), random_(seed) {}

  void next(T& a, T& b) {
    a = draw(random_() % 8);
    b = draw(random_() % 8);
    if (op_ == ir::Op::pow && random_() % 4) {
      // A base and an exponent whose power is in range.
      a = std::fabs(a);
      const T limit = T(std::numeric_limits<T>::max_exponent) / std::max(std::fabs(std::log2(a)), T(1e-20));
      if (std::isfinite(limit)) b = T(2.3 * uniform() - 1.15) * limit;
    }
    if (op_ == ir::Op::fmod && random_() % 2) b = T(a * T(uniform()));
    if ((op_ == ir::Op::hypot || op_ == ir::Op::atan2) && random_() % 2)
      b = T(a * T(std::exp2(40 * uniform() - 20)));
  }

 private:
  double uniform() { return double(random_() >> 11) * 0x1p-53; }
  T draw(uint64_t kind) {
    constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
    const Bits any = Bits(random_());
    if (kind < 2) return std::bit_cast<T>(any);
    if (kind < 5) {  // magnitudes 2^-12 to 2^12, either sign
      const Bits exponent = Bits(std::numeric_limits<T>::max_exponent - 1 - 12 + int(random_() % 24));
      const Bits low = any & ((Bits(1) << kMantissa) - 1), sign = any & (Bits(1) << (8 * sizeof(T) - 1));
      return std::bit_cast<T>(Bits(sign | exponent << kMantissa | low));
    }
    if (kind == 5) return T(uniform() * 4 - 2);
    if (kind == 6)
      return T(std::round(uniform() * 200) * 0.785398163397448309616L + (uniform() - 0.5) * 1e-3);
    return T(uniform() * 2.1 * std::numeric_limits<T>::max_exponent * 0.6931471805599453 *
             (uniform() < 0.5 ? -1 : 1));
  }

  ir::Op op_;
  std::mt19937_64 random_;
};

/// Largest error of powi's products over bases whose |exponent|th power is a normal number.
template <class T>
double powi_error(int exponent, int64_t count, uint64_t seed) {
  using W = Wider<T>;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(-1, 1);
  const auto size = uint64_t(std::abs(exponent));
  const auto power = [&](auto base) {
    using X = decltype(base);
    const X p = lockstep::detail::power_by_squaring(base, size, [](X x, X y) { return x * y; });
    return exponent < 0 ? 1 / p : p;
  };
  const double range = (std::numeric_limits<T>::max_exponent - 3) / double(size);
  double worst = 0;
  for (int64_t n = 0; n < count; ++n) {
    const T base = T(std::copysign(std::exp2(range * unit(random)), unit(random)));
    // |exponent| products in the wider type lose a few of its bits, of which it has as many again as T.
    worst = std::max(worst, ulp_error<T>(power(base), power(W(base))));
  }
  return worst;
}

}  // namespace lockstep::testing
