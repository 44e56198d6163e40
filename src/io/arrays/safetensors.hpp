// The .safetensors format: a JSON header of names, types, shapes and byte ranges, then the data.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "io/arrays/npy.hpp"

namespace lockstep::io {

/// Named tensors in the order of their bytes. Tensors of types that Lockstep does not hold (8-bit floats) are left out
/// with their reason. Throws InputError on anything malformed: ranges that leave the file, overlap, leave gaps or do not
/// fit their shape, names given twice, a header that is not JSON or longer than 100 MB. `where` names the source.
NpzArrays parse_safetensors(std::span<const std::byte> bytes, std::string_view where);
/// With names, only those are read; others cost nothing.
NpzArrays read_safetensors(const std::filesystem::path& path, const std::vector<std::string>& names = {});

}  // namespace lockstep::io
