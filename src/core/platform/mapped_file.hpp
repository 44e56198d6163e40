// A scratch file in memory that the system may write out, for arrays larger than the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace lockstep::platform {

/// Zeros of `bytes` in a file without a name in the folder of `target`.
class MappedFile {
 public:
  /// Throws InputError where the file cannot be made or the disk has no room.
  MappedFile(const std::filesystem::path& target, int64_t bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::byte* data() const { return data_; }

 private:
  const size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace lockstep::platform
