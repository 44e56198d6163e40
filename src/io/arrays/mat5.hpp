// MATLAB's MAT-files of version 5 (MAT5, also "v6" and "v7"): real numeric arrays, plain or compressed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "io/arrays/npy.hpp"

namespace lockstep::io {

/// The real numeric arrays of the file as f64, in C order with MATLAB's shape (rows, columns, …); others are
/// left out with their reason. Throws InputError for files of version 4 and 7.3 (HDF5) and for damage. Format:
/// MathWorks, "MAT-File Format", chapter 1.
NpzArrays parse_mat5(std::span<const std::byte> bytes, std::string_view where);
NpzArrays read_mat5(const std::filesystem::path& path);

}  // namespace lockstep::io
