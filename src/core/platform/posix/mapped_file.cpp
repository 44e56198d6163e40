#include "core/platform/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/files/folder.hpp"
#include "lockstep/error.hpp"

namespace lockstep::platform {

MappedFile::MappedFile(const std::filesystem::path& target, int64_t bytes)
    : bytes_(static_cast<size_t>(bytes)) {
  const ScratchFile file(target);  // the memory outlives its descriptor
  int error = ::posix_fallocate(file.descriptor(), 0, bytes);
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
    if (memory == MAP_FAILED) error = errno;
  }
  if (memory == MAP_FAILED)
    throw InputError(fmt::format("no scratch file of {} MiB: {}", bytes >> 20, std::strerror(error)),
                     target.string(), "a folder that can be written and has room");
  data_ = static_cast<std::byte*>(memory);
}

MappedFile::~MappedFile() { ::munmap(data_, bytes_); }

}  // namespace lockstep::platform
