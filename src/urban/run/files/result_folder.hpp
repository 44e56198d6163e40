// The folder of a run's results, before anything is computed.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "core/files/folder.hpp"
#include "io/rasters/raster.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {

/// Throws InputError where it cannot be made.
inline void make_result_folder(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder, error) && !std::filesystem::is_directory(folder, error))
    throw InputError("a file has this name", folder.string(), "a folder, or an unused name");
  make_output_folder(folder);
}

/// Throws UnsupportedError where GDAL is absent; `others`: the format that needs none.
inline void require_geotiff(std::string_view others) {
  if (const std::string reason = io::gdal_unavailable_reason(); !reason.empty())
    throw UnsupportedError(fmt::format("GeoTIFF needs GDAL ({})", reason), "format tif",
                           fmt::format("GDAL (Debian 12: apt install libgdal32), or {}", others));
}

}  // namespace lockstep::urban
