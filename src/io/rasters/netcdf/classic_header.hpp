// Headers of classic NetCDF files, whose counts the library believes.
#pragma once

#include <filesystem>

namespace lockstep::io {

/// Throws InputError where a file that begins as a classic one (CDF-1, -2 or -5) has a header whose counts, lengths, types or
/// numbers of dimensions cannot be: libnetcdf would allocate or index by them. Nothing is said of other files.
/// Format: NetCDF Classic Format Specifications, appendix B of the NetCDF User's Guide.
void check_classic_netcdf(const std::filesystem::path& path);

}  // namespace lockstep::io
