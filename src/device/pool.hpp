// Freed memory kept for the next allocation of its size class, so that iterations allocate nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/platform/threads.hpp"
#include "device/backend.hpp"

namespace lockstep::device {

/// Freed memory by its size, at most so many bytes of it together.
class KeptMemory {
 public:
  /// Which memory goes where more than `most` bytes would be kept: the one that comes, or all that came before it.
  enum class Full : uint8_t { drop_new, drop_old };
  KeptMemory(int64_t most, Full full) : most_(most), full_(full) {}
  /// Memory of that size, or null.
  std::shared_ptr<Memory> take(int64_t bytes);
  void keep(int64_t bytes, std::shared_ptr<Memory> memory);
  void trim();

 private:
  const int64_t most_;
  const Full full_;
  Mutex mutex_;
  std::multimap<int64_t, std::shared_ptr<Memory>> kept_;
  int64_t kept_bytes_ = 0;
};

/// Freed memory that work of one stream alone has used, for the next allocation on it: no other stream waits for it.
class StreamMemory : public KeptMemory {
 public:
  StreamMemory();
};

/// While it exists, this thread promises to use what it allocates on the device on that stream alone. Without effect for
/// the default stream, and where memory is pooled here.
class OneStreamMemory {
 public:
  OneStreamMemory(const Device& device, const Stream& stream);
  ~OneStreamMemory();
  OneStreamMemory(const OneStreamMemory&) = delete;

 private:
  friend class MemoryPool;
  static std::shared_ptr<StreamMemory> of(const Backend& backend);
  const Backend* backend_;
  std::shared_ptr<StreamMemory> memory_;  // null: without effect
  OneStreamMemory* outer_;
};

class MemoryPool {
 public:
  /// `keep_bytes` 0 turns pooling off (back ends with a pool of their own; the interpreter, which tracks
  /// first writes).
  void configure(std::shared_ptr<Backend> backend, int64_t keep_bytes);
  /// Throws DeviceError(allocation) after one retry with the pool, and what the thread's stream keeps, emptied.
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
    Shared(std::shared_ptr<Backend> of, int64_t keep_bytes)
        : backend(std::move(of)), pooled(keep_bytes > 0), kept(keep_bytes, KeptMemory::Full::drop_new) {}
    const std::shared_ptr<Backend> backend;
    const bool pooled;
    KeptMemory kept;
    std::atomic<int64_t> allocated{0}, peak{0};
  };
  std::shared_ptr<Shared> shared_;
};

/// Sizes are rounded up so that similar sizes share memory: to 1/8 of their power of two above 1 MiB, to 256
/// bytes below.
int64_t size_class(int64_t bytes);

}  // namespace lockstep::device
