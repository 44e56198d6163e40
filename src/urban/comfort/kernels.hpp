// The device kernels of thermal comfort.
#pragma once

#include "lockstep/kernel/kernel.hpp"

namespace lockstep::urban::kernels {

/// (At<1>, Tmrt, out, f32 Ta, f32 c0 … c6): Ta + Σ c_k (Tmrt - Ta)^k. NaN stays.
const Kernel& utci();

/// (At<1>, Tmrt, table, out, f32 first, f32 entries a kelvin): the table's line between two entries; NaN outside.
const Kernel& pet();

/// The same where the wind differs: shares of a wind lie between planes a and b, and the tables have a row for each of
/// node_factor(0), node_factor(1), … of it. (At<1>, Tmrt, a, b, rows of c0 … c6 and 0, out, f32 Ta, f32 share of b)
const Kernel& utci_wind();
/// (At<1>, Tmrt, a, b, rows of tables, out, f32 first, f32 entries a kelvin, i32 entries of a row, f32 share of b)
const Kernel& pet_wind();

/// Between the results of a step in air that is whole kelvins warmer than the weather's. Called for one `node` after the other,
/// in ascending order. (At<1>, K above the weather's air, part of this node, inout, i32 node)
const Kernel& between_airs();

}  // namespace lockstep::urban::kernels
