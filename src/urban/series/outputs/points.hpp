// Points of interest: places of which a run writes one row a step.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "io/rasters/raster.hpp"
#include "lockstep/urban/series.hpp"

namespace lockstep::urban {

/// A CSV with columns id, x, y (the raster's coordinates) or id, lat, lon (WGS 84), or GeoJSON points in the
/// raster's coordinates or in degrees; files also GeoPackages and shapefiles of points. Throws InputError naming the line for malformed rows, and naming the
/// point for one outside the raster or named twice.
std::vector<SeriesPoint> parse_points(std::string_view text, std::string_view where,
                                      const io::RasterGrid& grid);
std::vector<SeriesPoint> read_points(const std::filesystem::path& path, const io::RasterGrid& grid);

}  // namespace lockstep::urban
