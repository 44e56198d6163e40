// Objects that a page holds by its handles.
#pragma once

#include "calls.hpp"
#include "lockstep/device.hpp"

namespace lockstep::web {

struct Objects {
  Handles<Device> devices{"device"};
  Handles<Buffer> buffers{"buffer"};
  Handles<Kernel> kernels{"kernel"};
};
Objects& objects();

}  // namespace lockstep::web
