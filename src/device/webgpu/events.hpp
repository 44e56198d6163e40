// Marks in the queue's work and the time between them.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "device/webgpu/core.hpp"

namespace lockstep::device::webgpu {

class EventPool;

/// A device timestamp, or the wall clock after all earlier work where the adapter has none that tell.
class WebgpuEvent final : public Event {
 public:
  WebgpuEvent(std::shared_ptr<EventPool> pool, int slot) : pool_(std::move(pool)), slot_(slot) {}
  explicit WebgpuEvent(std::chrono::steady_clock::time_point time) : time_(time) {}
  ~WebgpuEvent() override;

 private:
  friend class EventPool;
  std::shared_ptr<EventPool> pool_;
  int slot_ = -1;
  std::chrono::steady_clock::time_point time_;
};

class EventPool : public std::enable_shared_from_this<EventPool> {
 public:
  explicit EventPool(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~EventPool();
  std::shared_ptr<Event> record();
  double elapsed(const WebgpuEvent& from, const WebgpuEvent& to);

 private:
  friend class WebgpuEvent;
  static constexpr int kSlots = 128;  // per query set
  std::shared_ptr<Core> core_;
  std::vector<WGPUQuerySet> sets_;
  std::vector<int> free_;
  WGPUBuffer resolve_ = nullptr, staging_ = nullptr;
};

}  // namespace lockstep::device::webgpu
