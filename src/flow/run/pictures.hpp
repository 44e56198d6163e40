// Pictures of vorticity.
#pragma once

#include <filesystem>

#include "flow/run/fields.hpp"
#include "io/pictures/png.hpp"
#include "lockstep/array.hpp"

namespace lockstep::flow {

/// Member 0 of (members, ny, nx), y upwards. `range` is that of the colours; 0 is set by this field, so that
/// those after it share its scale.
io::Image picture_of(const Array& omega, double time, double& range);
/// The same as `omega_NNNNNN.png` of the folder.
std::filesystem::path draw_vorticity(const std::filesystem::path& folder, const Array& omega, int64_t number,
                                     double time, double& range);

/// All moments of a run as a film of about ten seconds, at most 25 pictures a second. Needs io::VideoWriter's module.
std::filesystem::path film(const Series& series, const std::filesystem::path& file);

}  // namespace lockstep::flow
