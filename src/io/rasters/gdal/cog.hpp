// Cloud-optimised GeoTIFF: one whole grid at once, tiled, with overviews where it is large.
#pragma once

#include <filesystem>

#include "io/rasters/raster_labels.hpp"

namespace lockstep::io {

/// `values`: rows × cols cells, NaN = missing, which the file names as its nodata value. Throws InputError where it
/// cannot be written and UnsupportedError where GDAL is absent.
void write_cog(const std::filesystem::path& path, const RasterGrid& grid, const RasterLabels& labels,
               const float* values);

}  // namespace lockstep::io
