#include "device/pool.hpp"

#include <bit>

#include "device/launch/check.hpp"
#include "device/stages/stage_scope.hpp"

namespace lockstep::device {

namespace {
void count(int64_t bytes) {
  if (StageScope* scope = current_scope()) scope->allocated_bytes += bytes;
}
}  // namespace

int64_t size_class(int64_t bytes) {
  const int64_t step = bytes <= (1 << 20) ? 256 : int64_t(std::bit_floor(uint64_t(bytes))) / 8;
  return std::max<int64_t>((bytes + step - 1) / step * step, 256);
}

void MemoryPool::configure(std::shared_ptr<Backend> backend, int64_t keep_bytes) {
  shared_ = std::make_shared<Shared>();
  shared_->backend = std::move(backend);
  shared_->keep_bytes = keep_bytes;
}

std::shared_ptr<Memory> MemoryPool::allocate(int64_t bytes) {
  const bool pooled = shared_->keep_bytes > 0;
  // A class above the device's limit would refuse what the exact size allows.
  int64_t size = pooled ? size_class(bytes) : bytes;
  if (size > shared_->backend->info().limits.buffer_bytes) size = bytes;
  std::shared_ptr<Memory> memory;
  if (pooled) {
    std::lock_guard lock(shared_->mutex);
    if (auto found = shared_->kept.find(size); found != shared_->kept.end()) {
      memory = std::move(found->second);
      shared_->kept.erase(found);
      shared_->kept_bytes -= size;
    }
  }
  if (!memory) {
    try {
      memory = shared_->backend->allocate(size);
    } catch (const DeviceError& error) {
      if (error.fault() != DeviceFault::allocation || !pooled) throw;
      trim();
      memory = shared_->backend->allocate(size);
    }
  }
  if (checks_on(*shared_->backend)) mark_unwritten(*shared_->backend, *memory, size);
  count(size);
  const int64_t now = shared_->allocated += size;
  for (int64_t peak = shared_->peak; now > peak && !shared_->peak.compare_exchange_weak(peak, now);) {}
  return std::shared_ptr<Memory>(memory.get(), [shared = shared_, memory, size](Memory*) mutable {
    count(-size);
    shared->allocated -= size;
    std::lock_guard lock(shared->mutex);
    if (shared->kept_bytes + size <= shared->keep_bytes) {
      shared->kept_bytes += size;
      shared->kept.emplace(size, std::move(memory));
    }
  });
}

void MemoryPool::trim() {
  std::multimap<int64_t, std::shared_ptr<Memory>> dropped;
  std::lock_guard lock(shared_->mutex);
  dropped.swap(shared_->kept);
  shared_->kept_bytes = 0;
}

}  // namespace lockstep::device
