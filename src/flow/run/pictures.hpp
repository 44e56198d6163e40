// Pictures of vorticity.
#pragma once

#include <filesystem>

#include "lockstep/array.hpp"

namespace lockstep::flow {

/// Member 0 of (members, ny, nx), y upwards, as `omega_NNNNNN.png` of the folder. `range` is that of the
/// colours; 0 is set by this field, so that those after it share its scale.
std::filesystem::path draw_vorticity(const std::filesystem::path& folder, const Array& omega, int64_t number,
                                     double time, double& range);

}  // namespace lockstep::flow
