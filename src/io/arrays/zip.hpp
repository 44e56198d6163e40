// ZIP archives of whole files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::io {

/// Writes members as they are, in this order.
void write_zip(const std::filesystem::path& path,
               const std::vector<std::pair<std::string, std::vector<std::byte>>>& members);

}  // namespace lockstep::io
