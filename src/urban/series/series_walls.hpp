// The walls of a run hour by hour.
#pragma once

#include "lockstep/context.hpp"
#include "urban/series/inputs/inputs.hpp"

namespace lockstep::urban {

/// The walls that were given, or found.
Walls walls_of_series(Context& context, const SeriesInputs& inputs, const WallOptions& options);

}  // namespace lockstep::urban
