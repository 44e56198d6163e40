// A thread of its own, where there are any.
#pragma once

#ifndef __wasm__
#include <thread>

namespace lockstep {
using Thread = std::jthread;
inline constexpr bool kHasThreads = true;
}  // namespace lockstep

#else
#include <cstdlib>

namespace lockstep {
struct Thread {
  template <class Work>
  explicit Thread(Work) {
    std::abort();
  }
};
inline constexpr bool kHasThreads = false;
}  // namespace lockstep
#endif
