#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "lockstep/verify.hpp"

namespace lockstep {

namespace {

/// Numbers in the order of their values: neighbours differ by one.
template <class I, class U>
double ulp_distance(U a, U b) {
  constexpr U sign = U(1) << (sizeof(U) * 8 - 1);
  const auto ordered = [](U u) {
    return u & sign ? -static_cast<double>(u & ~sign) : static_cast<double>(u);
  };
  return std::abs(ordered(a) - ordered(b));
}

double as_number(uint16_t bits, bool brain) {
  if (brain) return std::bit_cast<float>(uint32_t(bits) << 16);
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double magnitude = exponent == 31 ? (mantissa ? std::numeric_limits<double>::quiet_NaN()
                                                      : std::numeric_limits<double>::infinity())
                           : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                          : std::ldexp(mantissa, -24);
  return bits >> 15 ? -magnitude : magnitude;
}

struct Sums {
  Comparison total;
  double difference2 = 0, expected2 = 0, absolute = 0;
  int64_t classes_equal = 0;

  template <class E>
  void add(const HostArray& got, const HostArray& expected) {
    using U = std::conditional_t<
        sizeof(E) == 8, uint64_t,
        std::conditional_t<sizeof(E) == 4, uint32_t, std::conditional_t<sizeof(E) == 2, uint16_t, uint8_t>>>;
    const auto g = got.as<U>(), e = expected.as<U>();
    const bool floating = got.storage == Storage::f32 || got.storage == Storage::f64 ||
                          got.storage == Storage::f16 || got.storage == Storage::bf16;
    for (size_t n = 0; n < e.size(); ++n) {
      ++total.elements;
      if (g[n] == e[n] && !floating) {
        ++classes_equal;
        const double v = double(std::bit_cast<E>(e[n]));
        expected2 += v * v;
        continue;
      }
      double x, y;
      if constexpr (sizeof(E) == 2) {
        x = as_number(g[n], got.storage == Storage::bf16);
        y = as_number(e[n], got.storage == Storage::bf16);
      } else {
        x = double(std::bit_cast<E>(g[n]));
        y = double(std::bit_cast<E>(e[n]));
      }
      if (std::isnan(x) && std::isnan(y)) {
        ++classes_equal;
        continue;
      }
      if (g[n] != e[n]) {
        ++total.differing_elements;
        total.differing_bits += std::popcount(U(g[n] ^ e[n]));
      }
      const bool both_finite = std::isfinite(x) && std::isfinite(y);
      if (both_finite || x == y) ++classes_equal;
      if (!both_finite) {
        if (x != y) total.max_ulp = total.max_abs = std::numeric_limits<double>::infinity();
        continue;
      }
      const double d = std::abs(x - y);
      total.max_abs = std::max(total.max_abs, d);
      absolute += d;
      difference2 += d * d;
      expected2 += y * y;
      if (g[n] != e[n])
        total.max_ulp = std::max(total.max_ulp, floating ? ulp_distance<int64_t, U>(g[n], e[n]) : d);
    }
  }
};

}  // namespace

bool Comparison::within(const Bound& bound) const {
  if (bound.bits) return differing_bits == 0 && finite_equal == 100;
  if (finite_equal != 100 && bound.differing_share >= 1) return false;
  if (bound.max_ulp && !(max_ulp <= *bound.max_ulp)) return false;
  if (bound.rel_l2 && !(rel_l2 <= *bound.rel_l2)) return false;
  if (bound.max_abs && !(max_abs <= *bound.max_abs)) return false;
  return double(differing_elements) <= bound.differing_share * double(elements);
}

Comparison compare(const std::vector<HostArray>& got, const std::vector<HostArray>& expected) {
  if (got.size() != expected.size())
    throw InputError(fmt::format("{} arrays", got.size()), "compare", fmt::format("{}", expected.size()));
  Sums sums;
  for (size_t n = 0; n < got.size(); ++n) {
    const HostArray &g = got[n], &e = expected[n];
    if (g.storage != e.storage || !(g.shape == e.shape) || g.data.size() != e.data.size())
      throw InputError(fmt::format("array {}: {} {}", n, name(g.storage), to_string(g.shape)), "compare",
                       fmt::format("{} {}", name(e.storage), to_string(e.shape)));
    switch (g.storage) {
      case Storage::f32: sums.add<float>(g, e); break;
      case Storage::f64: sums.add<double>(g, e); break;
      case Storage::i32: sums.add<int32_t>(g, e); break;
      case Storage::u32: sums.add<uint32_t>(g, e); break;
      case Storage::i64: sums.add<int64_t>(g, e); break;
      case Storage::u64: sums.add<uint64_t>(g, e); break;
      case Storage::f16:
      case Storage::bf16: sums.add<uint16_t>(g, e); break;
      case Storage::u8: sums.add<uint8_t>(g, e); break;
    }
  }
  Comparison& total = sums.total;
  if (total.elements) {
    total.mean_abs = sums.absolute / double(total.elements);
    total.finite_equal = 100.0 * double(sums.classes_equal) / double(total.elements);
  }
  total.rel_l2 =
      sums.difference2 == 0
          ? 0
          : std::sqrt(sums.difference2 / std::max(sums.expected2, std::numeric_limits<double>::min()));
  return total;
}

}  // namespace lockstep
