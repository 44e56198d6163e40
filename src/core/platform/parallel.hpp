// Loops over threads. What an iteration computes may depend on no other one.
#pragma once

#include <cstdint>
#include <memory>

namespace lockstep::platform {

/// Threads that the process may use.
int available_threads();

/// Threads that share the parts of a loop.
class ThreadArena {
 public:
  /// 0: all that the process may use.
  explicit ThreadArena(int count = 0);
  ~ThreadArena();
  int count() const { return count_; }

  /// Calls `body(first, last)` for ranges that make up [0, parts).
  template <class F>
  void for_parts(int64_t parts, F body) const {
    run(parts, [](void* f, int64_t first, int64_t last) { (*static_cast<F*>(f))(first, last); }, &body);
  }

 private:
  void run(int64_t parts, void (*body)(void*, int64_t, int64_t), void* data) const;
  struct Arena;
  int count_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace lockstep::platform
