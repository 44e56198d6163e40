// Device functions that printed CUDA kernels call by name; only the used ones are printed.
#pragma once

#include <span>

#include "compile/clike/printer.hpp"
#include "lockstep/device.hpp"

namespace lockstep::clike {

std::span<const Helper> cuda_helpers(Numerics numerics, int arch);

}  // namespace lockstep::clike
