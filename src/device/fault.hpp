// Injected faults and the stage that this thread is in.
#pragma once

#include <string_view>

#include "lockstep/error.hpp"

namespace lockstep::device {

/// Names the stage of this thread for a scope; stages nest, the inner one counts.
class StageScope {
 public:
  explicit StageScope(std::string_view stage);
  ~StageScope();
  StageScope(const StageScope&) = delete;

 private:
  std::string_view outer_;
};

/// The stage of this thread; empty outside of one. For threads that work for it.
std::string_view current_stage();

/// Throws DeviceError when LOCKSTEP_FAULT (or set_fault) asks that this operation of the current stage fail.
void check_fault(DeviceFault operation);

}  // namespace lockstep::device
