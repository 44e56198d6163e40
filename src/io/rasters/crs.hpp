// Coordinate reference systems within the readers; what users need of them stands in raster.hpp.
#pragma once

#include <string>

#include "io/rasters/raster.hpp"

namespace lockstep::io {

struct GdalApi;

/// Fills in what the grid's WKT says about its units.
void describe_crs(const GdalApi& api, RasterGrid& grid);
/// Whether two texts mean the same system; texts that GDAL cannot tell apart (none there) differ.
bool is_same_crs(const std::string& wkt, const std::string& other_wkt);

}  // namespace lockstep::io
