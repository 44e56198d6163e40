// Numbers as distributions over bins (Hafner et al. 2025, DreamerV3, "symexp twohot"): the bins are symexp of equally spaced
// positions, a number is the two bins next to it, weighted so that their mean is the number, and a distribution stands
// for its mean. Kernels of losses and of forecast's heads share these.
#pragma once

#include "lockstep/device.hpp"
#include "lockstep/nn/network.hpp"

namespace lockstep::nn {

/// sign(t) log(1 + |t|) and its inverse.
template <class T>
Val<T> symlog(const Val<T>& t) {
  return copysign(log1p(abs(t)), t);
}
template <class T>
Val<T> symexp(const Val<T>& s) {
  return copysign(expm1(abs(s)), s);
}

/// symexp of positions from -kTwoHotLimit to kTwoHotLimit.
template <class T>
struct TwoHotBins {
  Val<i32> count;
  Val<T> width, density;  // between positions; positions a unit

  explicit TwoHotBins(int bins)
      : count(bins), width(T(2 * kTwoHotLimit / (bins - 1))), density(T((bins - 1) / (2 * kTwoHotLimit))) {}
  explicit TwoHotBins(const Val<i32>& bins)
      : count(bins),
        width(Val<T>(T(2 * kTwoHotLimit)) / cast<T>(bins - 1)),
        density(cast<T>(bins - 1) * T(1 / (2 * kTwoHotLimit))) {}

  Val<T> value(const Val<i32>& n) const { return symexp<T>(cast<T>(n) * width - T(kTwoHotLimit)); }

  /// The bins low and low + 1, and the weight of the upper one. Numbers beyond the last bins are those.
  struct Pair {
    Val<i32> low;
    Val<T> upper;
    Val<T> weight(const Val<i32>& n) const {
      return select(n == low, T(1) - upper, select(n == low + 1, upper, Val<T>(T(0))));
    }
  };
  Pair pair(const Val<T>& number) const {
    const Val<T> last = cast<T>(count - 2);
    const Val<T> place = clamp(floor((symlog<T>(number) + T(kTwoHotLimit)) * density), T(0), last);
    const Val<i32> low = cast<i32>(place);
    const Val<T> below = value(low), above = value(low + 1);
    return {low, clamp((number - below) / (above - below), T(0), T(1))};
  }

  /// Sum over the bins of weight(n) value(n), which lie symmetrically about 0: by pairs, so that symmetric weights give 0.
  template <class Weight>
  Val<T> weighted_sum(const Weight& weight) const {
    Var<T> sum = T(0);
    for_(0, count / 2, [&](Val<i32> n) {
      const Val<i32> mirrored = count - 1 - n;
      sum = fma(weight(mirrored) - weight(n), value(mirrored), Val<T>(sum));
    });
    return sum;
  }
};

}  // namespace lockstep::nn
