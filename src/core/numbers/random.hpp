// Random numbers by counters: the same for every device, thread and order of evaluation. Philox 2x32-10 of
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

#include <cstdint>

namespace lockstep {

inline uint32_t multiply_high(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); }

/// U is uint32_t or the kernel language's u32; `high_half(a, b)` is the upper half of a product.
template <class U, class High>
U philox(U counter0, U counter1, U key, High high_half) {
  for (int round = 0; round < 10; ++round) {
    const U high = high_half(counter0, U(0xD256D193u)), low = counter0 * U(0xD256D193u);
    counter0 = high ^ key ^ counter1;
    counter1 = low;
    key = key + U(0x9E3779B9u);
  }
  return counter0;
}

inline uint32_t philox(uint32_t counter0, uint32_t counter1, uint32_t key) {
  return philox<uint32_t>(counter0, counter1, key, multiply_high);
}

/// A seed of 64 bits as a key.
inline uint32_t random_key(uint64_t seed) {
  seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9ull;
  seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EBull;
  return uint32_t(seed >> 32) ^ uint32_t(seed);
}

/// A seed and a number of the use as a key: streams of different uses do not meet.
inline uint32_t random_key(uint64_t seed, uint64_t use) {
  return random_key(seed * 0x9E3779B97F4A7C15ull + (use + 1) * 0xD1B54A32D192ED03ull);
}

/// In (0, 1), 2^32 values.
inline double unit_interval(uint32_t bits) { return (double(bits) + 0.5) * 0x1p-32; }

/// In [0, 1), a multiple of 2^-24.
inline double random_unit(uint32_t counter0, uint32_t counter1, uint32_t key) {
  return double(philox(counter0, counter1, key) >> 8) * 0x1p-24;
}

}  // namespace lockstep
