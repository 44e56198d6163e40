// Kernels with f64 in place of narrower floats, to compare derivatives more sharply than f32 rounds.
#pragma once

#include <optional>

#include "lockstep/kernel/kernel.hpp"

namespace lockstep::gradients {

/// None where the bits of a float matter, where fields of structs are read, and where nothing is narrow.
std::optional<Kernel> widened(const Kernel& kernel);

}  // namespace lockstep::gradients
