// A scratch file in memory that the system may write out, for arrays larger than the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "core/files/atomic_file.hpp"

namespace lockstep::platform {

/// Zeros of `bytes` in a hidden file beside `target`; the file is gone with the object.
class MappedFile {
 public:
  /// Throws InputError where the file cannot be made or the disk has no room.
  MappedFile(const std::filesystem::path& target, int64_t bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::byte* data() const { return data_; }

 private:
  AtomicPath path_;
  const size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace lockstep::platform
