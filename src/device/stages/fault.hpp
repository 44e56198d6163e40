// Injected faults.
#pragma once

#include "device/stages/stage_scope.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

/// Throws DeviceError when LOCKSTEP_FAULT (or set_fault) asks that this operation of the current stage fail.
void check_fault(DeviceFault operation);

}  // namespace lockstep::device
