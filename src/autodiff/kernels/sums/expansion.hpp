// Exact sums in a few f64 numbers of a lane: the fast form of exact_sum.hpp, without atomic operations.
//
// The rounding error of an addition goes to the next number. Where the last one takes all of it without error, the sum of
// the numbers is the exact sum. It is rounded once, by way of rounding to odd (Boldo and Melquiond, Emulation of FMA and
// correctly rounded sums, 2008). Other sums, such as those with infinities or with exponents very far apart, are added
// again in fixed point.
#pragma once

#include <array>
#include <limits>
#include <utility>

#include "autodiff/kernels/sums/exact_sum.hpp"
#include "math/bodies/arithmetic.hpp"

namespace lockstep::gradients {

/// Numbers that hold an exact sum of terms of a type: errors of f32 are exact in the second one, as good as always.
template <class T>
constexpr int kParts = sizeof(T) == 8 ? 3 : 2;

/// a + b, with the last bit set where that is inexact: rounding the result again to a shorter format, or to f64 as part
/// of a further sum, rounds a + b.
inline Val<f64> sum_to_odd(const Val<f64>& a, const Val<f64>& b) {
  const auto [sum, error] = math::exact_sum<Val, f64>(a, b);
  const Val<i64> bits = bitcast<i64>(sum);
  const Val<i64> away = select((bits ^ bitcast<i64>(error)) >= 0, Val<i64>(1), Val<i64>(-1));
  return bitcast<f64>(bits + select(error != 0 && (bits & 1) == 0, away, Val<i64>(0)));
}

/// The sum of the terms that were added, as a sum of numbers; `lost` where it is not.
template <class T>
class Expansion {
 public:
  void add(const Val<f64>& term) {
    Val<f64> rest = term;
    for (Var<f64>& part : parts_) {
      const auto [sum, error] = math::exact_sum<Val, f64>(part, rest);
      part = sum;
      rest = error;
    }
    lost_ = lost() || rest != 0;  // also where it is NaN
  }
  Val<f64> part(int k) const { return parts_[size_t(k)]; }
  /// use(whether something was lost, else the rounded sum).
  template <class Use>
  void rounded(Use use) const {
    if constexpr (sizeof(T) == 8) {
      const auto [high, low] = math::exact_sum<Val, f64>(part(1), part(2));
      const auto [first, rest] = math::exact_sum<Val, f64>(part(0), high);
      const Val<bool> overflows = !(abs(first) <= std::numeric_limits<f64>::max());
      use(lost() || overflows, first + sum_to_odd(rest, low));
    } else {
      use(lost(), cast<f32>(sum_to_odd(part(0), part(1))));
    }
  }
  Val<bool> lost() const { return lost_; }

 private:
  std::array<Var<f64>, size_t(kParts<T>)> parts_ = zeros(std::make_index_sequence<size_t(kParts<T>)>());
  Var<bool> lost_ = Val<bool>(false);

  template <size_t... k>
  static std::array<Var<f64>, sizeof...(k)> zeros(std::index_sequence<k...>) {
    return {((void)k, Var<f64>(0.0))...};
  }
};

/// The sum of the terms that each(use) gives.
template <class T, class Each>
Expansion<T> sum_of(const Each& each) {
  Expansion<T> sum;
  each([&](const Val<T>& term) { sum.add(cast<f64>(term)); });
  return sum;
}
/// Stores the rounded sum of the terms of `each`: that of `sum` if nothing was lost, else in fixed point.
template <class T, class Each, class Store>
void store_sum(const Expansion<T>& sum, const Each& each, Store store) {
  sum.rounded([&](const Val<bool>& lost, const Val<T>& rounded) {
    if_(
        lost,
        [&] {
          const LaneSum<T> exact;
          each([&](const Val<T>& term) { exact.add(term); });
          store(exact.rounded());
        },
        [&] { store(rounded); });
  });
}

}  // namespace lockstep::gradients
