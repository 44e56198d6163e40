// Constants of the trees and what the kernels and the plain reference share of them.
#pragma once

#include <limits>

#include "lockstep/primitives.hpp"
#include "primitives/kernels.hpp"

namespace lockstep::primitives {

inline constexpr int kLanes = 256, kWide = 4, kReduceRounds = 8, kScanRounds = 4;
inline constexpr int kRound = kLanes * kWide, kScanChunk = kRound * kScanRounds;
static_assert(kReduceChunk == int64_t(kRound) * kReduceRounds);

/// The neutral element: -0 for sums, since -0 + 0 = 0 and -0 + -0 = -0.
template <class T>
constexpr T neutral(Chunk how) {
  using L = std::numeric_limits<T>;
  switch (how) {
    case Chunk::min: return L::has_infinity ? L::infinity() : L::max();
    case Chunk::max: return L::has_infinity ? -L::infinity() : L::lowest();
    default: return L::has_infinity ? -T(0) : T(0);
  }
}

/// a b + c: fma for floats.
template <class T>
Val<T> multiply_add(Val<T> a, Val<T> b, Val<T> c) {
  if constexpr (std::is_floating_point_v<T>)
    return fma(a, b, c);
  else
    return a * b + c;
}

}  // namespace lockstep::primitives
