// Random inputs of cases: the same for a seed on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::cases {

/// SplitMix64: small, and the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567u) {}
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint32_t u32() { return uint32_t(bits() >> 32); }
  /// In [low, high).
  double uniform(double low, double high) { return low + (high - low) * double(bits() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

template <class E>
std::vector<E> uniform(int64_t count, uint64_t seed, double low = -1, double high = 1) {
  Random random(seed);
  std::vector<E> values(static_cast<size_t>(count));
  for (E& v : values) v = static_cast<E>(random.uniform(low, high));
  return values;
}

}  // namespace lockstep::cases
