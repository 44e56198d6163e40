// The value of a loss on the device.
#pragma once

#include "pde/kernels/kernels.hpp"

namespace lockstep::pde {

/// The sum of the weighted terms, in the order and with the roundings of BoundLoss::terms. Parameters: totals
/// (levels * K), value (1), scale0 … of the K residuals. One point.
Kernel value_kernel(const Plan& plan, Type sum, Storage value);

/// Arrays array0 … of rank 1 times seed / scale in place; nothing where that is 1. As many points as
/// the longest array has elements, kScaleLanes at most.
inline constexpr int kScaleLanes = 1 << 18;
Kernel scale_kernel(Storage arrays, Storage seed, int count);

}  // namespace lockstep::pde
