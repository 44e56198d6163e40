// Kernels of a family, by their parameters.
#pragma once

#include <functional>
#include <string>

#include "lockstep/device.hpp"

namespace lockstep::optimize {

/// A kernel by its key, traced once in the process. Threads may trace different ones at the same time.
Kernel cached_kernel(const std::string& key, const std::function<Kernel()>& make);

}  // namespace lockstep::optimize
