// Products of f64 matrices by the tensor cores of a GPU.
#pragma once

#include <string>

#include "lockstep/device.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::primitives {

/// Why the device has none that add in the order of k; empty: it has.
std::string no_tensor_cores(const Device& device, Storage storage);

/// The native form of the plain kernel, with its domain; a block has tile x tile elements of c (64 or 128).
Kernel tensor_kernel(int tile, bool batch);

}  // namespace lockstep::primitives
