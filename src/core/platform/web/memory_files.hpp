// Files of a call of a page: contents in memory by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace lockstep::platform {

struct MemoryFiles {
  std::map<std::string, std::span<const std::byte>> given;  // for readers
  std::map<std::string, std::string> written;
};
/// Of a file: "./a/../b" is "b".
inline std::string memory_name(const std::filesystem::path& path) { return path.lexically_normal().native(); }
/// Of a file that the call was given or has written; -1: there is none.
int64_t bytes_in_memory(const std::string& name);
/// Those that readers and writers use; null while the page has none.
MemoryFiles*& memory_files();

}  // namespace lockstep::platform
