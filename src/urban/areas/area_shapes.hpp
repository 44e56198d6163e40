// The areas of a table as shapes on a run's grid.
#pragma once

#include <vector>

#include "lockstep/urban/areas.hpp"
#include "urban/areas/polygon.hpp"

namespace lockstep::urban {

/// Named and checked. Throws InputError that names file and feature.
std::vector<AreaShape> read_area_shapes(const AreaStatisticsOptions& options, const io::RasterGrid& grid);

}  // namespace lockstep::urban
