// In oneTBB's place where ThreadSanitizer shall see every order between threads: what the sources use of it, by std::thread. oneTBB itself is not
// built with the sanitizer, and its queues would hide or invent orders. Nothing here orders two parts of one call, nor two tasks of one group.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace tbb::parts {

constexpr int kThreads = 4, kMostThreads = 48;
inline std::atomic<int> running{0};

/// All of `work` at the same time, where there are not too many threads already.
inline void at_once(const std::vector<std::function<void()>>& work) {
  std::vector<std::thread> threads;
  for (size_t k = 1; k < work.size(); ++k) {
    if (running.fetch_add(1, std::memory_order_relaxed) < kMostThreads) {
      threads.emplace_back(work[k]);
    } else {
      running.fetch_sub(1, std::memory_order_relaxed);
      work[k]();
    }
  }
  if (!work.empty()) work[0]();
  for (std::thread& thread : threads) thread.join();
  running.fetch_sub(int(threads.size()), std::memory_order_relaxed);
}

/// body(first, end) for parts of [first, end), of at least `grain` each.
template <class I, class Body>
void spread(I first, I end, I grain, const Body& body) {
  if (!(first < end)) return;
  const I size = end - first;
  const I count = std::clamp<I>(size / std::max<I>(grain, 1), 1, kThreads);
  std::vector<std::function<void()>> work;
  for (I k = 0; k < count; ++k)
    work.emplace_back(
        [&body, from = first + size * k / count, to = first + size * (k + 1) / count] { body(from, to); });
  at_once(work);
}

}  // namespace tbb::parts
