// Random numbers by counters: the same for every device, thread and order of evaluation. Philox 2x32-10 of
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

#include <cstdint>
#include <utility>

namespace lockstep::flow {

inline uint32_t multiply_high(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); }

/// `high(a, b)` is the upper half of a product.
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

/// A wavenumber vector as a counter: the same for every number of points.
template <class U, class I>
U mode_counter(I ix, I iy) {
  return (U(iy) << U(16)) | (U(ix) & U(0xFFFFu));
}

/// A seed of 64 bits as a key.
inline uint32_t random_key(uint64_t seed) {
  seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9ull;
  seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EBull;
  return uint32_t(seed >> 32) ^ uint32_t(seed);
}

}  // namespace lockstep::flow
