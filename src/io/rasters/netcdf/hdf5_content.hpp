// Files of HDF5 may keep their data in other files.
#pragma once

#include <filesystem>

namespace lockstep::io {

/// Throws InputError where an HDF5 file, such as a NetCDF-4 one, names other files for its content: external storage, virtual
/// datasets, external links. Reading it would read these. Nothing is said of files that are not HDF5.
void check_hdf5_content(const std::filesystem::path& path);

}  // namespace lockstep::io
