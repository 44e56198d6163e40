// IDX files, as the MNIST database is distributed: a type, sizes, elements in big-endian order; plain or gzip.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "lockstep/array.hpp"

namespace lockstep::io {

/// Arrays of unsigned bytes (type 8), of 1 to 4 axes. `where` names the source. Throws InputError for other types,
/// sizes that are not positive, and data that is shorter or longer than they say.
Array parse_idx(std::string_view bytes, std::string_view where);
Array read_idx(const std::filesystem::path& path);

}  // namespace lockstep::io
