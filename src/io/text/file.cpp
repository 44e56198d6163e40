#include "io/text/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/files/folder.hpp"
#include "core/record/journal.hpp"
#include "io/text/input_memory.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

template <class Bytes>
Bytes read_whole(const std::filesystem::path& path, const char* expected) {
  const InputFile file(path, expected);
  InputClaim claim;
  Bytes whole = within_memory(path.string(), [&] {
    Bytes bytes;
    // A pipe has no size, so reading continues to the end regardless of the reported size. A file that has not grown
    // meanwhile is read without extra room.
    size_t done = 0, room = file.size() > 0 ? static_cast<size_t>(file.size()) : 1 << 16;
    claim = InputClaim(static_cast<double>(room), "the file", path.string());
    bytes.resize(room);
    while (true) {
      std::byte more{};
      const bool full = done == bytes.size();
      const ssize_t got = full ? ::read(file.descriptor(), &more, 1)
                               : ::read(file.descriptor(), bytes.data() + done, bytes.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) file.fail(errno);
      if (got == 0) break;
      if (full) {
        claim.reach(2 * done, "the file", path.string());
        bytes.resize(2 * done);
        std::memcpy(bytes.data() + done, &more, 1);
      }
      done += static_cast<size_t>(got);
    }
    bytes.resize(done);
    return bytes;
  });
  ReaderScope::keep(std::move(claim));
  return whole;
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path, const char* expected)
    : path_(path),
      expected_(expected),
      descriptor_(::open(InputFolder::name_of(path).c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail(errno);
  struct stat status{};
  const int error = ::fstat(descriptor_, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
  if (error != 0) {
    ::close(descriptor_);
    fail(error);
  }
  regular_ = S_ISREG(status.st_mode);
  if (regular_) journal::input(path_);
  size_ = status.st_size > 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::fail(int error) const {
  throw InputError(fmt::format("cannot read the file: {}", std::strerror(error)), path_.string(), expected_);
}

bool read_at(int descriptor, uint64_t offset, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

bool write_at(int descriptor, uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return true;
}

std::vector<std::byte> read_file(const std::filesystem::path& path, const char* expected) {
  return read_whole<std::vector<std::byte>>(path, expected);
}
std::string read_text_file(const std::filesystem::path& path, const char* expected) {
  return read_whole<std::string>(path, expected);
}

}  // namespace lockstep::io
