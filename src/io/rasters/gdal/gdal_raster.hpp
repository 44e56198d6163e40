// Readers and writers that go through GDAL; raster.hpp chooses them by the file's suffix.
#pragma once

#include <filesystem>
#include <memory>

#include "io/rasters/raster_labels.hpp"

namespace lockstep::io {

std::unique_ptr<RasterReader> open_gdal_reader(const std::filesystem::path& path,
                                               const RasterReadOptions& options);
std::unique_ptr<RasterWriter> create_gdal_writer(const std::filesystem::path& path, const RasterGrid& grid,
                                                 const RasterLabels& labels = {});

}  // namespace lockstep::io
