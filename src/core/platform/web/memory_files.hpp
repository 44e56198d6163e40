// Files of a call of a page: contents in memory by name.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace lockstep::platform {

struct MemoryFiles {
  std::map<std::string, std::span<const std::byte>> given;  // for readers
  std::map<std::string, std::string> written;
};
/// Those that readers and writers use; null while the page has none.
MemoryFiles*& memory_files();

}  // namespace lockstep::platform
