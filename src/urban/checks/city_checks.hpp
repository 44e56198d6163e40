// Doubts about the rasters of a run and its points.
#pragma once

#include <span>
#include <vector>

#include "io/rasters/raster.hpp"
#include "lockstep/urban/series.hpp"
#include "urban/checks/findings.hpp"

namespace lockstep::urban {

/// The rasters of a run: heights before they are prepared, missing pixels NaN. Empty rasters are absent.
struct CheckedCity {
  const CityInput& city;
  const Raster& land_cover;
  const io::RasterGrid& grid;
  std::span<const SeriesPoint> points;
};

/// Throws, or makes rows of, what no run could be right with: a DSM and a DEM of other datums or units, canopies above
/// sea level that are taken as above ground, and the other way round.
void check_city(const CheckedCity& checked, Findings& findings);

}  // namespace lockstep::urban
