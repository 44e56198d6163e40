// Pictures of maps with a place: what maps of values are drawn over.
#pragma once

#include <filesystem>
#include <string>

#include "io/pictures/png.hpp"
#include "io/rasters/raster.hpp"

namespace lockstep::io {

/// The part of a picture that covers the extent of the grid, as RGB, averaged where it is finer than the result may be; white
/// outside of the picture and where it is transparent. Reads that part alone. Any format of GDAL with bands of red, green, blue
/// (and alpha) in bytes; without a CRS (a PNG with its world file) it is taken to be in the grid's. Throws InputError for others,
/// for another CRS, for what is rotated, and for what does not meet the grid.
Image read_basemap(const std::filesystem::path& path, const RasterGrid& grid, const std::string& grid_where);

}  // namespace lockstep::io
