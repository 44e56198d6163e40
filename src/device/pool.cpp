#include "device/pool.hpp"

#include <algorithm>
#include <bit>

#include "device/capabilities.hpp"
#include "device/launch/check.hpp"
#include "device/stages/stage_scope.hpp"
#include "device/state.hpp"

namespace lockstep::device {

namespace {
/// Memory of a stream goes round below the first size, in classes of a quarter of a power of two, up to the second together.
constexpr int64_t kStreamLargest = int64_t(16) << 20, kStreamKept = int64_t(256) << 20;
int64_t stream_class(int64_t bytes) {
  const int64_t step = std::max<int64_t>(256, int64_t(std::bit_floor(uint64_t(bytes))) / 4);
  return (bytes + step - 1) / step * step;
}

thread_local OneStreamMemory* one_stream = nullptr;

void count(int64_t bytes) {
  if (StageScope* scope = current_scope()) scope->allocated_bytes += bytes;
}
}  // namespace

std::shared_ptr<Memory> KeptMemory::take(int64_t bytes) {
  std::lock_guard lock(mutex_);
  const auto found = kept_.find(bytes);
  if (found == kept_.end()) return nullptr;
  std::shared_ptr<Memory> memory = std::move(found->second);
  kept_.erase(found);
  kept_bytes_ -= bytes;
  return memory;
}

void KeptMemory::keep(int64_t bytes, std::shared_ptr<Memory> memory) {
  std::multimap<int64_t, std::shared_ptr<Memory>> dropped;  // freed when the lock is open
  std::lock_guard lock(mutex_);
  if (kept_bytes_ + bytes > most_) {
    if (full_ == Full::drop_new) return;
    dropped.swap(kept_);
    kept_bytes_ = 0;
  }
  kept_.emplace(bytes, std::move(memory));
  kept_bytes_ += bytes;
}

void KeptMemory::trim() {
  std::multimap<int64_t, std::shared_ptr<Memory>> dropped;
  std::lock_guard lock(mutex_);
  dropped.swap(kept_);
  kept_bytes_ = 0;
}

/// Where it fills up, its memory is of sizes that are not requested any more.
StreamMemory::StreamMemory() : KeptMemory(kStreamKept, Full::drop_old) {}

OneStreamMemory::OneStreamMemory(const Device& device, const Stream& stream)
    : backend_(&device.backend()), outer_(one_stream) {
  Queue* const queue = DeviceState::queue_of(stream);
  if (queue && !capabilities_of(device).host_memory) {
    if (!queue->memory) queue->memory = std::make_shared<StreamMemory>();
    memory_ = queue->memory;
  }
  one_stream = this;
}
OneStreamMemory::~OneStreamMemory() { one_stream = outer_; }

std::shared_ptr<StreamMemory> OneStreamMemory::of(const Backend& backend) {
  return one_stream && one_stream->backend_ == &backend ? one_stream->memory_ : nullptr;
}

int64_t size_class(int64_t bytes) {
  const int64_t step = bytes <= (1 << 20) ? 256 : int64_t(std::bit_floor(uint64_t(bytes))) / 8;
  return std::max<int64_t>((bytes + step - 1) / step * step, 256);
}

void MemoryPool::configure(std::shared_ptr<Backend> backend, int64_t keep_bytes) {
  shared_ = std::make_shared<Shared>(std::move(backend), keep_bytes);
}

std::shared_ptr<Memory> MemoryPool::allocate(int64_t bytes) {
  const std::shared_ptr<StreamMemory> stream =
      shared_->pooled ? nullptr : OneStreamMemory::of(*shared_->backend);
  // Freed memory of this size is kept here; null: by nobody.
  const std::shared_ptr<KeptMemory> kept = shared_->pooled
                                               ? std::shared_ptr<KeptMemory>(shared_, &shared_->kept)
                                           : bytes <= kStreamLargest ? stream
                                                                     : nullptr;
  int64_t size = shared_->pooled ? size_class(bytes) : kept ? stream_class(bytes) : bytes;
  // A class above the device's limit would refuse what the exact size allows.
  if (size > shared_->backend->info().limits.buffer_bytes) size = bytes;
  std::shared_ptr<Memory> memory = kept ? kept->take(size) : nullptr;
  if (!memory) {
    try {
      memory = shared_->backend->allocate(size);
    } catch (const DeviceError& error) {
      if (error.fault() != DeviceFault::allocation || !(shared_->pooled || stream)) throw;
      if (stream) stream->trim();
      trim();
      memory = shared_->backend->allocate(size);
    }
  }
  if (checks_on(*shared_->backend)) mark_unwritten(*shared_->backend, *memory, size);
  count(size);
  const int64_t now = shared_->allocated += size;
  for (int64_t peak = shared_->peak; now > peak && !shared_->peak.compare_exchange_weak(peak, now);) {}
  return std::shared_ptr<Memory>(memory.get(), [shared = shared_, memory, size, kept](Memory*) mutable {
    count(-size);
    shared->allocated -= size;
    if (kept) kept->keep(size, std::move(memory));
  });
}

void MemoryPool::trim() { shared_->kept.trim(); }

}  // namespace lockstep::device
