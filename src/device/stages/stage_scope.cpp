#include "device/stages/stage_scope.hpp"

#include <algorithm>

#include "device/state.hpp"

namespace lockstep::device {

namespace {
thread_local StageScope* innermost = nullptr;
}

StageScope::StageScope(std::string_view stage) : stage_(stage), outer_(innermost) { innermost = this; }
StageScope::~StageScope() { innermost = outer_; }
StageScope* current_scope() { return innermost; }
std::string_view current_stage() { return innermost ? innermost->stage_ : std::string_view(); }

void StageScope::uses(DeviceState& device, const std::shared_ptr<Queue>& queue) {
  for (const auto& [known, its] : queues_)
    if (its == queue && known.get() == &device) return;
  queues_.emplace_back(device.shared_from_this(), queue);
}

void StageScope::synchronize() const {
  for (const auto& [device, queue] : queues_) {
    device->check_alive();
    device->backend->synchronize(queue.get());
  }
}

}  // namespace lockstep::device
