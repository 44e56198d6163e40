// GeoTIFFs that say what they hold.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/rasters/raster.hpp"

namespace lockstep::io {

/// Labels of a GeoTIFF beside its cells; `.npy` has no place for them.
struct RasterLabels {
  std::string title, unit;                                 ///< of the band
  std::vector<std::pair<std::string, std::string>> facts;  ///< of the file, by name
  /// Cells are whole numbers of 0 … 254 and stored as bytes; 255 marks missing ones.
  bool bytes = false;
};

/// RasterWriter::create with labels.
std::unique_ptr<RasterWriter> create_labelled_raster(const std::filesystem::path& path,
                                                     const RasterGrid& grid, const RasterLabels& labels);

}  // namespace lockstep::io
