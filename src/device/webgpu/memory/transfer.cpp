#include "device/webgpu/memory/transfer.hpp"

#include <algorithm>
#include <cstring>

namespace lockstep::device::webgpu {

Transfer::~Transfer() {
  for (Slot& slot : slots_)
    if (slot.buffer) core_->n.BufferRelease(slot.buffer);
}

void Transfer::upload(WebgpuMemory& to, int64_t offset, const void* data, int64_t bytes) {
  to.for_each_part(offset, bytes, [&](WGPUBuffer buffer, int64_t at, int64_t done, int64_t part) {
    core_->write(buffer, uint64_t(at), static_cast<const char*>(data) + done, uint64_t(part));
  });
  core_->check(DeviceFault::allocation, "upload");
}

void Transfer::collect(Slot& slot) {
  if (!slot.to) return;
  char* const to = slot.to;
  slot.to = nullptr;
  const uint64_t size = uint64_t((slot.skip + slot.bytes + 3) & ~int64_t(3));
  core_->read_mapped(slot.buffer, size, slot.submission,
                     [&](const char* mapped) { std::memcpy(to, mapped + slot.skip, size_t(slot.bytes)); });
}

void Transfer::download(const WebgpuMemory& from, int64_t offset, void* data, int64_t bytes) {
  size_t next = 0;
  try {
    from.for_each_part(offset, bytes, [&](WGPUBuffer buffer, int64_t at, int64_t done, int64_t part) {
      for (int64_t inner = 0; inner < part;) {
        Slot& slot = slots_[next++ % slots_.size()];
        collect(slot);
        const int64_t place = at + inner;
        slot.skip = place & 3;
        slot.bytes = std::min(part - inner, kStagingBytes - slot.skip);
        const int64_t size = (slot.skip + slot.bytes + 3) & ~int64_t(3);
        if (slot.size < size) {
          if (slot.buffer) core_->n.BufferRelease(slot.buffer);
          slot.buffer = nullptr;
          slot.size = 0;
          const int64_t wanted = std::max<int64_t>(size, 64 << 10);
          slot.buffer = core_->make_buffer(
              uint64_t(wanted), WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, DeviceFault::allocation);
          slot.size = wanted;
        }
        core_->copy(buffer, uint64_t(place & ~int64_t(3)), slot.buffer, 0, uint64_t(size));
        core_->flush();
        slot.submission = core_->last();
        slot.to = static_cast<char*>(data) + done + inner;
        inner += slot.bytes;
      }
    });
    for (size_t i = 0; i < slots_.size(); ++i) collect(slots_[next++ % slots_.size()]);
  } catch (...) {
    for (Slot& slot : slots_) slot.to = nullptr;
    throw;
  }
}

}  // namespace lockstep::device::webgpu
