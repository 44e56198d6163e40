// Virtual rasters (.vrt): XML that names other files.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::io {

/// The XML of a virtual raster with absolute sources, for GDAL to open in place of the file. Throws InputError where it
/// holds more than bands, georeference and sources, and where a source lies outside of the file's folder, is no file,
/// or is itself a text: what a stranger's file names must not reach other files or the network.
std::string checked_vrt(const std::filesystem::path& file);

}  // namespace lockstep::io
