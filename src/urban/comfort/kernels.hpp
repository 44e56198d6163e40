// The device kernels of thermal comfort.
#pragma once

#include "lockstep/kernel/kernel.hpp"

namespace lockstep::urban::kernels {

/// (At<1>, Tmrt, out, f32 Ta, f32 c0 … c6): Ta + Σ c_k (Tmrt - Ta)^k. NaN stays.
const Kernel& utci();

/// (At<1>, Tmrt, table, out, f32 first, f32 entries a kelvin): the table's line between two entries; NaN outside.
const Kernel& pet();

}  // namespace lockstep::urban::kernels
