// Adds up what pixels see of the sun.
#pragma once

#include "lockstep/kernel/kernel.hpp"

namespace lockstep::urban::kernels {

/// Planes of the counts: positions of the sun that a pixel sees past buildings and, with plants, past both.
inline constexpr int kPastBuildings = 0, kPastPlants = 1;
/// Adds one position of the sun. (At<2>, shadow planes (ShadowPlanes), inout counts (1 or 2, rows, cols))
const Kernel& count_sun(bool plants);

}  // namespace lockstep::urban::kernels
