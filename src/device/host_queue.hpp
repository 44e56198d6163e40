// Queues and graphs of the back ends that run everything at once: a graph is a list of steps.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "device/backend.hpp"

namespace lockstep::device {

struct HostGraph final : RecordedGraph {
  std::vector<std::function<void()>> steps;
  std::vector<std::shared_ptr<uint64_t>> scalars;  // the first of each variable dispatch
};

struct HostQueue final : Queue {
  std::shared_ptr<HostGraph> recording;  // null: work of this queue runs at once
};

/// The graph that a queue records into, or null.
inline HostGraph* recorder(Queue* queue) {
  return queue ? static_cast<HostQueue*>(queue)->recording.get() : nullptr;
}

/// Recording, the same for all of them.
class HostBackend : public Backend {
 public:
  std::shared_ptr<Queue> begin_record() override {
    auto queue = std::make_shared<HostQueue>();
    queue->recording = std::make_shared<HostGraph>();
    return queue;
  }
  std::shared_ptr<RecordedGraph> end_record(Queue& queue) override {
    return std::exchange(static_cast<HostQueue&>(queue).recording, nullptr);
  }
  void set_scalars(RecordedGraph& graph, size_t dispatch, std::span<const uint64_t> scalars) override {
    std::copy(scalars.begin(), scalars.end(), static_cast<HostGraph&>(graph).scalars.at(dispatch).get());
  }
};

}  // namespace lockstep::device
