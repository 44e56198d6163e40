#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/numbers/half.hpp"
#include "lockstep/verify.hpp"

namespace lockstep {

namespace {

/// Numbers in the order of their values: neighbours differ by one.
template <class U>
double ulp_distance(U a, U b) {
  constexpr U sign = U(1) << (sizeof(U) * 8 - 1);
  const auto ordered = [](U u) {
    return u & sign ? -static_cast<double>(u & ~sign) : static_cast<double>(u);
  };
  return std::abs(ordered(a) - ordered(b));
}

// An element as a number; 16-bit floats are held by their bits.
template <class E>
double number_of(E v) {
  if constexpr (std::is_same_v<E, f16>)
    return f16_to_f32(v.bits);
  else if constexpr (std::is_same_v<E, bf16>)
    return bf16_to_f32(v.bits);
  else
    return double(v);
}

struct Sums {
  Comparison total;
  double difference2 = 0, expected2 = 0, absolute = 0;
  int64_t classes_equal = 0;

  /// Adds one output; returns its largest difference over its largest expected magnitude.
  template <class E>
  double add(const Array& got, const Array& expected) {
    using U = std::conditional_t<
        sizeof(E) == 8, uint64_t,
        std::conditional_t<sizeof(E) == 4, uint32_t, std::conditional_t<sizeof(E) == 2, uint16_t, uint8_t>>>;
    const auto g = got.as<E>(), e = expected.as<E>();
    constexpr bool kFloating = !std::is_integral_v<E>;
    double largest_difference = 0, largest = 0;
    for (size_t n = 0; n < e.size(); ++n) {
      ++total.elements;
      const U got_bits = std::bit_cast<U>(g[n]), expected_bits = std::bit_cast<U>(e[n]);
      const double x = number_of(g[n]), y = number_of(e[n]);
      if (got_bits == expected_bits && !kFloating) {
        ++classes_equal;
        expected2 += y * y;
        continue;
      }
      if (std::isnan(x) && std::isnan(y)) {
        ++classes_equal;
        continue;
      }
      if (got_bits != expected_bits) {
        ++total.differing_elements;
        total.differing_bits += std::popcount(U(got_bits ^ expected_bits));
      }
      const bool both_finite = std::isfinite(x) && std::isfinite(y);
      if (both_finite || x == y) ++classes_equal;
      if (!both_finite) {
        if (x != y)
          largest_difference = total.max_ulp = total.max_abs = std::numeric_limits<double>::infinity();
        continue;
      }
      const double d = std::abs(x - y);
      total.max_abs = std::max(total.max_abs, d);
      largest_difference = std::max(largest_difference, d);
      largest = std::max(largest, std::abs(y));
      absolute += d;
      difference2 += d * d;
      expected2 += y * y;
      if (got_bits != expected_bits)
        total.max_ulp = std::max(total.max_ulp, kFloating ? ulp_distance<U>(got_bits, expected_bits) : d);
    }
    if (!kFloating) return std::numeric_limits<double>::quiet_NaN();
    return largest_difference == 0 ? 0 : largest_difference / largest;
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

Comparison compare(const std::vector<Array>& got, const std::vector<Array>& expected) {
  if (got.size() != expected.size())
    throw InputError(fmt::format("{} arrays", got.size()), "compare", fmt::format("{}", expected.size()));
  Sums sums;
  for (size_t n = 0; n < got.size(); ++n) {
    const Array &g = got[n], &e = expected[n];
    if (g.storage() != e.storage() || g.shape() != e.shape())
      throw InputError(fmt::format("array {}: {} {}", n, name(g.storage()), to_string(g.shape())), "compare",
                       fmt::format("{} {}", name(e.storage()), to_string(e.shape())));
    with_element(g.storage(), [&]<class E>(E) { sums.total.relative_max.push_back(sums.add<E>(g, e)); });
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
