#include "device/webgpu/events.hpp"

#include <cstring>

namespace lockstep::device::webgpu {

WebgpuEvent::~WebgpuEvent() {
  if (!pool_) return;
  std::lock_guard lock(pool_->core_->mutex);
  pool_->free_.push_back(slot_);
}

EventPool::~EventPool() {
  for (WGPUQuerySet set : sets_) core_->n.QuerySetRelease(set);
  if (resolve_) core_->n.BufferRelease(resolve_);
  if (staging_) core_->n.BufferRelease(staging_);
}

std::shared_ptr<Event> EventPool::record() {
  if (core_->seconds_per_tick == 0) {
    core_->finish();
    return std::make_shared<WebgpuEvent>(std::chrono::steady_clock::now());
  }
  if (free_.empty()) {
    WGPUQuerySetDescriptor descriptor{};
    descriptor.type = WGPUQueryType_Timestamp;
    descriptor.count = kSlots;
    sets_.push_back(core_->n.DeviceCreateQuerySet(core_->device, &descriptor));
    core_->check(DeviceFault::allocation, "timestamps");
    for (int i = kSlots; i-- > 0;) free_.push_back(int(sets_.size() - 1) * kSlots + i);
  }
  const int slot = free_.back();
  free_.pop_back();
  auto event = std::make_shared<WebgpuEvent>(shared_from_this(), slot);
  core_->n.CommandEncoderWriteTimestamp(core_->encoder(), sets_[size_t(slot / kSlots)],
                                        uint32_t(slot % kSlots));
  return event;
}

double EventPool::elapsed(const WebgpuEvent& from, const WebgpuEvent& to) {
  if (from.slot_ < 0) return std::chrono::duration<double>(to.time_ - from.time_).count();
  constexpr uint64_t kStep = 256;  // alignment of a resolve
  if (!resolve_) {
    resolve_ = core_->make_buffer(2 * kStep, WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc,
                                  DeviceFault::allocation);
    staging_ = core_->make_buffer(2 * kStep, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst,
                                  DeviceFault::allocation);
  }
  const std::array<int, 2> slots{from.slot_, to.slot_};
  for (size_t i = 0; i < 2; ++i)
    core_->n.CommandEncoderResolveQuerySet(core_->encoder(), sets_[size_t(slots[i] / kSlots)],
                                           uint32_t(slots[i] % kSlots), 1, resolve_, i * kStep);
  core_->copy(resolve_, 0, staging_, 0, 2 * kStep);
  std::array<uint64_t, 2> ticks{};
  core_->flush();
  core_->read_mapped(staging_, 2 * kStep, core_->last(), [&](const char* bytes) {
    for (size_t i = 0; i < 2; ++i) std::memcpy(&ticks[i], bytes + i * kStep, 8);
  });
  return double(int64_t(ticks[1] - ticks[0])) * core_->seconds_per_tick;
}

}  // namespace lockstep::device::webgpu
