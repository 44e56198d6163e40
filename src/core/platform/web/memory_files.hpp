// Files that a call of a page writes: contents in memory by name.
#pragma once

#include <map>
#include <string>

namespace lockstep::platform {

using MemoryFiles = std::map<std::string, std::string>;
/// Those that writers use; null while the page has none.
MemoryFiles*& memory_files();

}  // namespace lockstep::platform
