// Labels of the bands of a raster.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::io {

struct BandLabel {
  std::string text;       ///< the band's description; of a NetCDF dimension its value
  std::string dimension;  ///< of NetCDF
  std::string unit;       ///< of that dimension: "degrees", "hours since 2015-06-21"
};

/// One a band; of `.npy` one without a text. Errors as RasterReader::open.
std::vector<BandLabel> band_labels(const std::filesystem::path& path);

}  // namespace lockstep::io
