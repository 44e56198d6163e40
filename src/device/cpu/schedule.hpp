// Spreads the points or groups of a dispatch over threads. What a point computes depends on no other point
// and on no thread, so results are the same for any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compile/native/abi.hpp"
#include "core/platform/parallel.hpp"

namespace lockstep::device::cpu {

struct Work {
  compile::simd::KernelFunction function = nullptr;
  int64_t scratch_bytes = 0;
  bool points = true;
  int64_t cost = 1;  // rough operations of one point or group
};

class Threads {
 public:
  /// 0: all that the process may use.
  explicit Threads(int count) : arena_(count) {}
  int count() const { return arena_.count(); }

  /// `alone`: on the calling thread only.
  void run(const Work& work, const compile::simd::Frame& frame, const compile::simd::Box& box, bool alone);
  /// Splits [0, bytes) over the threads, in parts that are multiples of a page.
  template <class F>
  void for_bytes(int64_t bytes, F body);

 private:
  platform::ThreadArena arena_;
};

template <class F>
void Threads::for_bytes(int64_t bytes, F body) {
  constexpr int64_t kPart = 1 << 20;
  arena_.for_parts((bytes + kPart - 1) / kPart, [&](int64_t first, int64_t last) {
    body(first * kPart, std::min(last * kPart, bytes) - first * kPart);
  });
}

}  // namespace lockstep::device::cpu
