// Physical bounds of the preset `corrected`, measured on a device: rows of the acceptance gates.
#pragma once

#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/urban/series.hpp"

namespace lockstep::urban {

std::vector<Gate> physics_gates(Context& context);

}  // namespace lockstep::urban
