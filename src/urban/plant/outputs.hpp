// Files of a choice of trees.
#pragma once

#include <vector>

#include "urban/plant/species.hpp"
#include "urban/series/inputs/inputs.hpp"

namespace lockstep::urban {

/// cdsm and tdsm with the trees (GeoTIFF, or .npy where the DSM is one), trees.gpkg, curve.csv and its picture; their names go
/// to the result. Without GDAL there is no GeoPackage, which is a warning.
void write_plants(const PlantOptions& options, const SeriesInputs& inputs,
                  const std::vector<CrownPixel>& crown, PlantResult& result);

}  // namespace lockstep::urban
