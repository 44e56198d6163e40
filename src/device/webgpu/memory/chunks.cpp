#include <fmt/format.h>

#include <algorithm>

#include "device/webgpu/adapters.hpp"
#include "device/webgpu/core.hpp"
#include "device/webgpu/memory/windows.hpp"

namespace lockstep::device::webgpu {

WebgpuMemory::WebgpuMemory(std::shared_ptr<Core> core, int64_t size, int64_t chunk_bytes)
    : core_(std::move(core)), chunk_bytes_(chunk_bytes) {
  bytes = size;
  // A software adapter takes the process's memory without asking whether there is any.
  if (core_->adapter.software()) {
    const MemoryInfo info = memory_info(core_->adapter);
    if (size > info.free_bytes)
      throw DeviceError(DeviceFault::allocation, fmt::format("{} bytes on {}: {} bytes are free", size,
                                                             core_->adapter.name, info.free_bytes));
  }
  try {
    for (int64_t at = 0; at < padded_bytes() || chunks_.empty(); at += chunk_bytes_) {
      const int64_t part = std::max<int64_t>(std::min(chunk_bytes_, padded_bytes() - at), 4);
      chunks_.push_back(core_->make_buffer(
          uint64_t(part), WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst,
          DeviceFault::allocation));
    }
  } catch (...) {
    for (WGPUBuffer chunk : chunks_) core_->n.BufferRelease(chunk);
    throw;
  }
}

WebgpuMemory::~WebgpuMemory() {
  std::lock_guard lock(core_->mutex);
  for (WGPUBuffer chunk : chunks_) {
    core_->forget(chunk);
    core_->n.BufferRelease(chunk);
  }
}

BufferRange WebgpuMemory::range(int64_t offset, int64_t bytes_wanted) const {
  const ChunkPart part = chunk_part(offset, bytes_wanted, chunk_bytes_, padded_bytes());
  return {chunks_[size_t(part.chunk)], uint64_t(part.inside), uint64_t(part.bytes)};
}

}  // namespace lockstep::device::webgpu
