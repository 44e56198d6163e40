// GeoTIFFs that say what they hold.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/record/stamp.hpp"
#include "io/rasters/raster.hpp"

namespace lockstep::io {

/// Labels of a GeoTIFF in addition to its cells; `.npy` cannot store them.
struct RasterLabels {
  std::string title, unit;                                 ///< of the band
  std::vector<std::pair<std::string, std::string>> facts;  ///< of the file, by name
  /// Cells are whole numbers of 0 … 254 and stored as bytes; 255 marks missing ones.
  bool bytes = false;
};

/// Metadata of a GeoTIFF: the labels, the program and the run, by name.
inline std::vector<std::pair<std::string, std::string>> metadata_of(const RasterLabels& labels) {
  auto items = labels.facts;
  const record::Stamp stamp = record::stamp();
  if (!labels.title.empty()) items.emplace_back("TIFFTAG_IMAGEDESCRIPTION", labels.title);
  items.emplace_back("TIFFTAG_SOFTWARE", stamp.program);
  if (!stamp.run.empty()) items.emplace_back("LOCKSTEP_RUN", stamp.run);
  return items;
}

/// RasterWriter::create with labels.
std::unique_ptr<RasterWriter> create_labelled_raster(const std::filesystem::path& path,
                                                     const RasterGrid& grid, const RasterLabels& labels);

}  // namespace lockstep::io
