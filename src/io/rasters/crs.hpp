// Coordinate reference systems, internal to the readers. The public part is in raster.hpp.
#pragma once

#include <string>
#include <vector>

#include "io/rasters/raster.hpp"

namespace lockstep::io {

struct GdalApi;

/// Fills in what the grid's WKT says about its units, and reduces it to the system of the map.
void describe_crs(const GdalApi& api, RasterGrid& grid);
/// Takes coordinates, in place, from one system to another, given as WKT or as "EPSG:3006"; x is east or a longitude. Throws
/// InputError, naming `where`, where PROJ has no way.
void reproject(const std::string& from, const std::string& to, std::vector<double>& x, std::vector<double>& y,
               const std::string& where);
/// Whether two texts mean the same system; texts that GDAL cannot tell apart (none there) differ.
bool is_same_crs(const std::string& wkt, const std::string& other_wkt);

}  // namespace lockstep::io
