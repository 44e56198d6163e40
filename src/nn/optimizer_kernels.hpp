// Kernels of the optimisers beyond those of src/optimize.
#pragma once

#include "lockstep/device.hpp"

namespace lockstep::nn {

/// g *= most / norm where norm > most: (g, norm (1), most).
template <class T>
const Kernel& clip_kernel();

}  // namespace lockstep::nn
