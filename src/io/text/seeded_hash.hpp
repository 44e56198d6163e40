// A hash of numbers of a file that no file can be made to collide in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

namespace lockstep::io {

/// Its seed is drawn once a process. Tables that use it are for look-ups: their order is another in each run.
struct SeededHash {
  size_t operator()(uint64_t number) const {
    static const uint64_t seed = uint64_t{std::random_device{}()} << 32 | std::random_device{}();
    uint64_t h = number ^ seed;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;  // splitmix64
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return size_t(h ^ h >> 31);
  }
  template <size_t N>
  size_t operator()(const std::array<uint64_t, N>& numbers) const {
    uint64_t h = N;
    for (const uint64_t number : numbers) h = (*this)(h ^ number);
    return size_t(h);
  }
};

}  // namespace lockstep::io
