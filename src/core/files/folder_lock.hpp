// One run at a time in a folder of results.
#pragma once

#include <filesystem>

#include "core/files/folder.hpp"

namespace lockstep {

/// Holds a folder for this process until destroyed; the system lets go where the process is killed. Taking it
/// removes the hidden temporary files (AtomicPath) that processes which run no more left there.
class FolderLock {
 public:
  FolderLock() = default;
  /// Throws InputError where another process holds the folder, naming it, or no file can be made there.
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

 private:
  Folder folder_;
  int descriptor_ = -1;
};

}  // namespace lockstep
