// Switches of the CUDA back end for tests.
#pragma once

namespace lockstep::device::cuda {

/// Makes launches of small domains, too, take the kernel with several points a lane.
void always_several_points(bool always);

}  // namespace lockstep::device::cuda
