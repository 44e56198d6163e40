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
  /// Its symbols are visible to libraries that are loaded later.
  bool global = false;

  /// Tries, in this order, by absolute names alone: folders of $LOCKSTEP_LIBRARY_PATH, the program's folder and its
  /// ../lib, the same of the Lockstep library, the system's folders, Python's site-packages. Relative folders of other
  /// variables, relative names with folders and files that everybody may write are passed over. The first call also
  /// calls drop_relative_module_paths(). On failure the handle is empty and `reason`, if given, says why.
  /// Throws InputError where $LOCKSTEP_LIBRARY_PATH names anything but absolute folders that exist.
  DynamicLibrary load(std::string* reason = nullptr) const;
  /// The folders that load() tries before and after the system's own.
  static std::vector<std::filesystem::path> folders_before_system();
  /// Absolute folders of $LD_LIBRARY_PATH and the dynamic loader's own.
  static std::vector<std::filesystem::path> system_folders();
  std::vector<std::filesystem::path> folders_after_system() const;
};

/// Removes relative paths from the variables in which libraries look for modules of their own (GDAL_DRIVER_PATH,
/// HDF5_PLUGIN_PATH, VK_ICD_FILENAMES, …), with one line each: the current folder may hold what was downloaded.
void drop_relative_module_paths();

/// The folder of the running program.
std::filesystem::path program_folder();

}  // namespace lockstep
