// Queues and graphs of the back ends that run everything at once: a graph is a list of steps.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "device/backend.hpp"

namespace lockstep::device {

struct HostGraph final : RecordedGraph {
  std::vector<std::function<void()>> steps;
};

struct HostQueue final : Queue {
  std::shared_ptr<HostGraph> recording;  // null: work of this queue runs at once
};

inline std::shared_ptr<Queue> recording_queue() {
  auto queue = std::make_shared<HostQueue>();
  queue->recording = std::make_shared<HostGraph>();
  return queue;
}
inline std::shared_ptr<RecordedGraph> recorded_by(Queue& queue) {
  return std::exchange(static_cast<HostQueue&>(queue).recording, nullptr);
}
/// The graph that a queue records into, or null.
inline HostGraph* recorder(Queue* queue) {
  return queue ? static_cast<HostQueue*>(queue)->recording.get() : nullptr;
}

}  // namespace lockstep::device
