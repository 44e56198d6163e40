// Host memory of buffers, and what the system still has.
#pragma once

#include "device/backend.hpp"

namespace lockstep::device::cpu {

/// Aligned to cache lines with readable padding on both sides; large ones sit in huge pages.
class HostMemory : public Memory {
 public:
  /// Throws DeviceError(allocation).
  explicit HostMemory(int64_t bytes);
  /// Memory of others. Throws InputError where the bytes behind it, which kernels read, are not readable.
  HostMemory(const Foreign& foreign, int64_t bytes);
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  std::byte* data() { return data_; }

 private:
  std::byte* data_ = nullptr;
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<void> end_page_;  // goes before the owner
};

/// Memory of one thread that grows on need and is kept.
std::byte* thread_scratch(int64_t bytes);

/// From here a block is written past the caches.
inline constexpr int64_t kStreamBytes = int64_t(8) << 20;
/// Parts of a larger block of `whole` bytes.
void copy_part(std::byte* to, const std::byte* from, int64_t bytes, int64_t whole);
void clear_part(std::byte* to, int64_t bytes, int64_t whole);

}  // namespace lockstep::device::cpu
