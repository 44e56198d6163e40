// Spreads the points or groups of a dispatch over threads. What a point computes depends on no other point
// and on no thread, so results are the same for any number of threads.
#pragma once

#include <cstdint>
#include <memory>

#include "compile/llvm/abi.hpp"

namespace lockstep::device::cpu {

struct Work {
  compile::simd::KernelFunction function = nullptr;
  int64_t scratch_bytes = 0;
  bool points = true;
  int64_t cost = 1;  // rough operations of one point or group
};

/// What the process may use.
int all_threads();

class Threads {
 public:
  /// 0: all that the process may use.
  explicit Threads(int count);
  ~Threads();
  int count() const { return count_; }

  /// `alone`: on the calling thread only.
  void run(const Work& work, const compile::simd::Frame& frame, const compile::simd::Box& box, bool alone);
  /// Splits [0, bytes) over the threads, in parts that are multiples of a page.
  template <class F>
  void for_bytes(int64_t bytes, F body);

 private:
  struct Arena;
  void for_parts(int64_t parts, void (*body)(void*, int64_t, int64_t), void* data);

  int count_;
  std::unique_ptr<Arena> arena_;
};

template <class F>
void Threads::for_bytes(int64_t bytes, F body) {
  constexpr int64_t kPart = 1 << 20;
  struct Data {
    F* body;
    int64_t bytes;
  } data{&body, bytes};
  for_parts((bytes + kPart - 1) / kPart,
            [](void* p, int64_t first, int64_t last) {
              const Data& d = *static_cast<Data*>(p);
              (*d.body)(first* kPart, std::min(last * kPart, d.bytes) - first * kPart);
            },
            &data);
}

}  // namespace lockstep::device::cpu
