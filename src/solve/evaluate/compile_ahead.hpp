// Work that is done ahead on threads of its own: tables of the batches to come, kernels that will be
// launched.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/platform/thread.hpp"
#include "core/platform/threads.hpp"
#include "lockstep/device.hpp"

namespace lockstep::solve {

/// Pieces of work begin in the order in which they were added. They count as work of the stage in which they
/// were added, also for injected faults.
class CompileAhead {
 public:
  struct Work;
  using Handle = std::shared_ptr<Work>;

  /// Threads begin when there is work for them, one for each piece up to `threads`.
  explicit CompileAhead(int threads) : most_threads_(threads) {}
  /// Drops what has not begun and waits for the rest.
  ~CompileAhead();
  CompileAhead(const CompileAhead&) = delete;
  CompileAhead& operator=(const CompileAhead&) = delete;

  /// Threads that this machine has for it; none where the device is a CPU that was given one thread.
  static int threads_for(const DeviceInfo& device);

  Handle add(std::function<void()> work);
  /// Until the work is done, by this thread where none has begun it. Throws what the work threw.
  void wait(const Handle& handle);
  /// Until all work is done, by this thread, too.
  void wait_all();
  /// Throws the first DeviceError of work that this thread's stage added and nobody waited for, once.
  void check();

 private:
  void run(UniqueLock<Mutex>& lock, const Handle& handle);
  void serve();

  int most_threads_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Handle> queue_;
  int running_ = 0;
  bool ends_ = false;
  std::vector<Handle> failures_;
  std::vector<Thread> threads_;
};

}  // namespace lockstep::solve
