// The city of a run, from the rasters that its record names.
#pragma once

#include <cstdint>
#include <vector>

#include "urban/results/run_folder.hpp"

namespace lockstep::urban {

/// 1 inside; empty where nothing is known of it.
struct CityOutlines {
  std::vector<uint8_t> buildings, crowns;
};

/// Nothing where a raster is gone, has changed since the run, or was none of a file; a line reports this.
CityOutlines recorded_outlines(const RunFolder& run);

}  // namespace lockstep::urban
