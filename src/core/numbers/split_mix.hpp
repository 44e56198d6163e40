// SplitMix64 (Steele, Lea and Flood 2014): well mixed numbers that are the same everywhere.
#pragma once

#include <cstdint>

namespace lockstep {

inline constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15u;

/// The number that a generator in this state gives; its next state is `state + kSplitMixStep`. A bijection.
constexpr uint64_t split_mix64(uint64_t state) {
  uint64_t z = state + kSplitMixStep;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace lockstep
