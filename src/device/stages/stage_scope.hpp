// The stage that this thread is in: its name, what the thread did in it, and where that work runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::device {

class Queue;
struct DeviceState;

/// Names the stage of this thread for a scope and counts what the thread does in it. Stages nest; work belongs
/// to the innermost one, so that the counts of all stages sum to those of the devices. A thread that works for
/// another one's stage opens a scope of its own.
class StageScope {
 public:
  explicit StageScope(std::string_view stage);
  ~StageScope();
  StageScope(const StageScope&) = delete;

  /// Waits for the queues that have work of this scope, and for no others. Throws DeviceError.
  void synchronize() const;

  int64_t launches = 0, bytes_to_device = 0, bytes_from_device = 0;
  int64_t allocated_bytes = 0;  // less what the thread gave back

 private:
  friend struct DeviceState;
  friend std::string_view current_stage();
  void uses(DeviceState& device, const std::shared_ptr<Queue>& queue);

  std::string_view stage_;
  StageScope* outer_;
  std::vector<std::pair<std::shared_ptr<DeviceState>, std::shared_ptr<Queue>>> queues_;
};

/// Null outside of a stage.
StageScope* current_scope();
/// The name of this thread's stage; empty outside of one.
std::string_view current_stage();

}  // namespace lockstep::device
