// Shared libraries that are found and loaded at run time, so that a missing one is a reason and not a crash.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {

/// A loaded library, closed with the last copy of the handle.
class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  explicit operator bool() const { return handle_ != nullptr; }
  /// The symbol's address, or null.
  void* symbol(const char* name) const;
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }
  const std::string& path() const { return path_; }

 private:
  friend struct LibrarySearch;
  std::shared_ptr<void> handle_;
  std::string path_;
};

/// Where and how to look for a library.
struct LibrarySearch {
  /// File names in order of preference, e.g. {"libcuda.so.1", "libcuda.so"}.
  std::vector<std::string> names;
  /// Folders below any `site-packages`, e.g. "nvidia/cu13/lib".
  std::vector<std::string> python_folders;

  /// Tries, in this order: folders of $LOCKSTEP_LIBRARY_PATH, the program's folder and its ../lib, the same
  /// of the Lockstep library, the system's search, Python's site-packages. On failure the handle is empty and
  /// `reason`, if given, tells why.
  DynamicLibrary load(std::string* reason = nullptr) const;
  /// The folders that load() tries before and after the system's own.
  static std::vector<std::filesystem::path> folders_before_system();
  std::vector<std::filesystem::path> folders_after_system() const;
};

/// The folder of the running program.
std::filesystem::path program_folder();

}  // namespace lockstep
