#include "io/text/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

template <class Bytes>
Bytes read_whole(const std::filesystem::path& path, const char* expected) {
  const auto fail = [&](int error) {
    throw InputError(fmt::format("cannot read the file: {}", std::strerror(error)), path.string(), expected);
  };
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(errno);
  struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } closer{descriptor};
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) fail(errno);
  if (S_ISDIR(status.st_mode)) fail(EISDIR);
  Bytes bytes;
  // A pipe has no size, so reading goes on until the end whatever the size says.
  bytes.resize(status.st_size > 0 ? static_cast<size_t>(status.st_size) : 1 << 16);
  size_t done = 0;
  while (true) {
    if (done == bytes.size()) bytes.resize(S_ISREG(status.st_mode) ? done + 1 : done * 2);
    const ssize_t got = ::read(descriptor, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(errno);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace

std::vector<std::byte> read_file(const std::filesystem::path& path, const char* expected) {
  return read_whole<std::vector<std::byte>>(path, expected);
}
std::string read_text_file(const std::filesystem::path& path, const char* expected) {
  return read_whole<std::string>(path, expected);
}

}  // namespace lockstep::io
