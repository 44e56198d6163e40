// The side of the GDAL module that is always linked: loads it on need and speaks its C interface.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "io/rasters/raster.hpp"

namespace lockstep::io {

std::unique_ptr<RasterReader> open_gdal_reader(const std::filesystem::path& path,
                                               const RasterReadOptions& options);
std::unique_ptr<RasterWriter> create_gdal_writer(const std::filesystem::path& path, const RasterGrid& grid);
bool is_same_crs(const std::string& wkt, const std::string& other_wkt);

}  // namespace lockstep::io
