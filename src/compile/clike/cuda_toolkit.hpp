// Where a CUDA toolkit keeps its libraries.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::clike {

/// File names, then the files of these names in the toolkits' folders.
inline std::vector<std::string> with_toolkit_files(const std::vector<std::string>& plain) {
  std::vector<std::string> names = plain;
  std::vector<std::filesystem::path> toolkits;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = std::getenv(variable); folder && *folder == '/') toolkits.emplace_back(folder);
  for (const char* folder : {"/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"}) toolkits.emplace_back(folder);
  for (const auto& toolkit : toolkits)
    for (const char* part : {"lib64", "targets/x86_64-linux/lib", "lib"})
      for (const std::string& name : plain) {
        std::error_code error;
        const auto file = toolkit / part / name;
        if (std::filesystem::exists(file, error)) names.push_back(file.string());
      }
  return names;
}

}  // namespace lockstep::clike
