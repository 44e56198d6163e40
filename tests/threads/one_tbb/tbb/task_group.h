// See parts.hpp.
#pragma once
#include <memory>

#include "tbb/parts.hpp"

namespace tbb {

/// Tasks by threads of the group's own. What came before run() is before its task, and all tasks are before the end of wait(); the counters order
/// nothing else, so that two tasks which touch the same memory are seen to do so even where they ran one after the other.
class task_group {
 public:
  task_group() : slots_(new Slot[kMostTasks]) {}
  ~task_group() { wait(); }
  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;

  template <class Work>
  void run(Work work) {
    pending_.fetch_add(1, std::memory_order_relaxed);
    Slot& slot = slots_[size_t(added_.fetch_add(1, std::memory_order_relaxed)) % kMostTasks];
    while (slot.full.load(std::memory_order_acquire)) std::this_thread::yield();
    slot.work = std::move(work);
    slot.full.store(true, std::memory_order_release);
    if (!begun_.exchange(true, std::memory_order_relaxed))
      for (int k = 0; k < parts::kThreads; ++k) threads_.emplace_back([this] { serve(); });
  }

  void wait() {
    while (pending_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
    ends_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    ends_.store(false, std::memory_order_relaxed);
    begun_.store(false, std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kMostTasks = 1 << 16;
  struct Slot {
    std::atomic<bool> full{false};
    std::function<void()> work;
  };

  void serve() {
    while (true) {
      int64_t next = taken_.load(std::memory_order_relaxed);
      if (next < added_.load(std::memory_order_relaxed)) {
        if (!taken_.compare_exchange_weak(next, next + 1, std::memory_order_relaxed)) continue;
        Slot& slot = slots_[size_t(next) % kMostTasks];
        while (!slot.full.load(std::memory_order_acquire)) std::this_thread::yield();
        const std::function<void()> work = std::move(slot.work);
        slot.work = nullptr;
        slot.full.store(false, std::memory_order_release);
        work();
        pending_.fetch_sub(1, std::memory_order_release);
      } else if (ends_.load(std::memory_order_relaxed)) {
        return;
      } else {
        std::this_thread::yield();
      }
    }
  }

  std::unique_ptr<Slot[]> slots_;
  std::atomic<int64_t> added_{0}, taken_{0}, pending_{0};
  std::atomic<bool> begun_{false}, ends_{false};
  std::vector<std::thread> threads_;
};

}  // namespace tbb
