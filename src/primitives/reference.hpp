// The primitives in plain C++ on host arrays, by the trees of primitives.hpp. Oracle of the cases; no engine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "primitives/sums/tree.hpp"

namespace lockstep::primitives::reference {

template <class T>
T add(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return T(uint32_t(a) + uint32_t(b));
}
template <class T>
T combine(Chunk how, T a, T b) {
  if (how == Chunk::min || how == Chunk::max) return a != a || (how == Chunk::min ? a <= b : a >= b) ? a : b;
  return add(a, b);
}

/// One level of the tree: the values of the chunks.
template <class T>
std::vector<T> reduce_level(Chunk how, std::span<const T> x, std::span<const T> y) {
  std::vector<T> values;
  for (size_t begin = 0; begin < x.size(); begin += size_t(kReduceChunk)) {
    std::vector<T> lane(kLanes);
    for (size_t l = 0; l < size_t(kLanes); ++l) {
      T a[kWide];
      for (size_t j = 0; j < size_t(kWide); ++j) {
        a[j] = neutral<T>(how);
        for (size_t r = 0; r < size_t(kReduceRounds); ++r) {
          const size_t at = begin + r * size_t(kRound) + l * size_t(kWide) + j;
          if (at >= x.size()) continue;
          if constexpr (std::is_floating_point_v<T>)
            if (how == Chunk::dot) {
              a[j] = std::fma(x[at], y[at], a[j]);
              continue;
            }
          a[j] = combine(how, a[j], x[at]);
        }
      }
      lane[l] = combine(how, combine(how, a[0], a[1]), combine(how, a[2], a[3]));
    }
    for (size_t s = size_t(kLanes) / 2; s > 0; s /= 2)
      for (size_t l = 0; l < s; ++l) lane[l] = combine(how, lane[l], lane[l + s]);
    values.push_back(lane[0]);
  }
  return values;
}
template <class T>
T reduce(Chunk how, std::span<const T> x, std::span<const T> y = {}) {
  if (x.empty()) return how == Chunk::sum || how == Chunk::dot ? T(0) : neutral<T>(how);
  std::vector<T> values = reduce_level(how, x, y);
  const Chunk next = how == Chunk::dot ? Chunk::sum : how;
  while (values.size() > 1) values = reduce_level<T>(next, std::vector<T>(values), {});
  return values[0];
}

/// Inclusive scan; where `heads` is not empty it starts again at each head. `exclusive` shifts by one element.
template <class T>
std::vector<T> scan(std::span<const T> x, std::span<const uint32_t> heads, bool exclusive) {
  const T none = neutral<T>(Chunk::sum);
  const size_t chunks = (x.size() + size_t(kScanChunk) - 1) / size_t(kScanChunk);
  const auto value = [&](size_t at) { return at < x.size() ? x[at] : none; };
  const auto head = [&](size_t at) { return at < heads.size() && heads[at] != 0; };
  std::vector<T> carries;
  if (chunks > 1) {
    std::vector<T> sums(chunks);
    std::vector<uint32_t> any(heads.empty() ? 0 : chunks);
    for (size_t c = 0; c < chunks; ++c) {
      const size_t begin = c * size_t(kScanChunk), end = begin + size_t(kScanChunk);
      size_t last = begin;
      for (size_t at = begin; at < end; ++at)
        if (head(at)) last = at, any[c] = 1;
      std::vector<T> lane(kLanes);
      for (size_t l = 0; l < size_t(kLanes); ++l) {
        T a[kWide];
        for (size_t j = 0; j < size_t(kWide); ++j)
          for (size_t r = 0; r < size_t(kScanRounds); ++r) {
            const size_t at = begin + r * size_t(kRound) + l * size_t(kWide) + j;
            const T v = at >= last ? value(at) : none;
            a[j] = r == 0 ? v : add(a[j], v);
          }
        lane[l] = add(add(a[0], a[1]), add(a[2], a[3]));
      }
      for (size_t s = size_t(kLanes) / 2; s > 0; s /= 2)
        for (size_t l = 0; l < s; ++l) lane[l] = add(lane[l], lane[l + s]);
      sums[c] = lane[0];
    }
    carries = scan<T>(sums, any, false);
  }

  std::vector<T> out(x.size());
  for (size_t c = 0; c < chunks; ++c) {
    T base = c > 0 ? carries[c - 1] : none;
    for (size_t r = 0; r < size_t(kScanRounds); ++r) {
      const size_t begin = c * size_t(kScanChunk) + r * size_t(kRound);
      T s[kRound], v[kLanes];
      bool f[kRound], h[kLanes];
      for (size_t l = 0; l < size_t(kLanes); ++l) {
        for (size_t j = 0; j < size_t(kWide); ++j) {
          const size_t k = l * size_t(kWide) + j;
          const bool own = head(begin + k);
          s[k] = j == 0 || own ? value(begin + k) : add(s[k - 1], value(begin + k));
          f[k] = own || (j > 0 && f[k - 1]);
        }
        v[l] = s[l * size_t(kWide) + kWide - 1];
        h[l] = f[l * size_t(kWide) + kWide - 1];
      }
      for (size_t d = 1; d < size_t(kLanes); d *= 2)
        for (size_t l = size_t(kLanes); l-- > 0;) {
          const T before = l >= d ? v[l - d] : none;
          if (!h[l]) v[l] = add(before, v[l]);
          h[l] = h[l] || (l >= d && h[l - d]);
        }
      for (size_t l = 0; l < size_t(kLanes); ++l) {
        const T lanes_before = l > 0 ? v[l - 1] : none;
        const T prefix = l > 0 && h[l - 1] ? lanes_before : add(base, lanes_before);
        for (size_t j = 0; j < size_t(kWide); ++j) {
          const size_t k = l * size_t(kWide) + j;
          if (begin + k >= x.size()) continue;
          T& to = out[begin + k];
          if (!exclusive)
            to = f[k] ? s[k] : add(prefix, s[k]);
          else if (begin + k == 0)
            to = T(0);
          else
            to = j > 0 ? add(prefix, s[k - 1]) : prefix;
        }
      }
      base = h[kLanes - 1] ? v[kLanes - 1] : add(base, v[kLanes - 1]);
    }
  }
  return out;
}

}  // namespace lockstep::primitives::reference
