// The city of a run, from the rasters that its record names.
#pragma once

#include "urban/pictures/map_base.hpp"
#include "urban/results/run_folder.hpp"

namespace lockstep::urban {

/// Whether the file of an option is still the one that the run read.
bool is_unchanged(const RecordedOption& file);

/// Its buildings, crowns and covers; nothing where a raster is gone, has changed since the run, or was none of a file, which a line
/// reports.
MapBase recorded_outlines(const RunFolder& run);

}  // namespace lockstep::urban
