// Where test data lies that is not part of the repository.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace lockstep::test {

/// $LOCKSTEP_DATA, else ../shared/data, next to the source tree. It may not exist.
inline std::filesystem::path data_folder() {
  if (const char* folder = std::getenv("LOCKSTEP_DATA")) return folder;
  return LOCKSTEP_DATA_DEFAULT;
}

}  // namespace lockstep::test
