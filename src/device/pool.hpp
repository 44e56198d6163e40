// Freed memory kept for the next allocation of its size class, so that iterations allocate nothing.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "core/platform/threads.hpp"
#include "device/backend.hpp"

namespace lockstep::device {

class MemoryPool {
 public:
  /// `keep_bytes` 0 turns pooling off (back ends with a pool of their own; the interpreter, which tracks
  /// first writes).
  void configure(std::shared_ptr<Backend> backend, int64_t keep_bytes);
  /// Throws DeviceError(allocation) after one retry with the pool emptied.
  std::shared_ptr<Memory> allocate(int64_t bytes);
  void trim();

  int64_t allocated_bytes() const { return shared_ ? shared_->allocated.load() : 0; }
  int64_t peak_bytes() const { return shared_ ? shared_->peak.load() : 0; }
  void reset_peak() {
    if (shared_) shared_->peak = shared_->allocated.load();
  }

 private:
  // Outlives the device while buffers exist.
  struct Shared {
    std::shared_ptr<Backend> backend;
    int64_t keep_bytes = 0, kept_bytes = 0;
    Mutex mutex;
    std::multimap<int64_t, std::shared_ptr<Memory>> kept;
    std::atomic<int64_t> allocated{0}, peak{0};
  };
  std::shared_ptr<Shared> shared_;
};

/// Sizes are rounded up so that similar sizes share memory: to 1/8 of their power of two above 1 MiB, to 256
/// bytes below.
int64_t size_class(int64_t bytes);

}  // namespace lockstep::device
