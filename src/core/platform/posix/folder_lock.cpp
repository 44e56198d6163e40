#include "core/files/folder_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep {
namespace fs = std::filesystem;
namespace {

constexpr const char* kLockName = ".lockstep.lock";

/// The process in `.<name>.<process>-<number>.part`, as AtomicPath names its files; 0 for other names.
pid_t owner_of_part(const std::string& name) {
  constexpr std::string_view suffix = ".part";
  if (!name.starts_with('.') || !name.ends_with(suffix)) return 0;
  const std::string_view stem = std::string_view(name).substr(0, name.size() - suffix.size());
  const size_t dot = stem.rfind('.'), dash = stem.rfind('-');
  if (dot == 0 || dot == stem.npos || dash == stem.npos || dash < dot) return 0;
  pid_t owner = 0;
  const std::from_chars_result read = std::from_chars(&stem[dot + 1], stem.data() + dash, owner);
  return read.ec == std::errc() && read.ptr == stem.data() + dash && owner > 0 ? owner : 0;
}

void remove_orphans(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const pid_t owner = owner_of_part(at->path().filename().string());
    if (owner == 0 || ::kill(owner, 0) == 0 || errno != ESRCH) continue;
    std::error_code ignored;
    fs::remove(at->path(), ignored);
  }
}

/// Whether the path still names the open file: its holder removes it when it lets go.
bool names(const fs::path& path, int descriptor) {
  struct stat by_name{}, by_descriptor{};
  return ::stat(path.c_str(), &by_name) == 0 && ::fstat(descriptor, &by_descriptor) == 0 &&
         by_name.st_ino == by_descriptor.st_ino && by_name.st_dev == by_descriptor.st_dev;
}

std::string holder(int descriptor) {
  char text[32] = "";
  const ssize_t length = ::pread(descriptor, text, sizeof text - 1, 0);
  return length > 0 ? fmt::format("process {}", std::string_view(text, static_cast<size_t>(length)))
                    : "another process";
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) : file_(folder / kLockName) {
  while (true) {
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
      throw InputError(fmt::format("cannot lock the folder: {}", std::strerror(errno)), folder.string(),
                       "a folder that can be written");
    // A file system without locks grants all.
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      const std::string who = holder(descriptor_);
      ::close(descriptor_);
      throw InputError(fmt::format("{} is writing its results here", who), folder.string(),
                       "a folder of its own for each run");
    }
    if (names(file_, descriptor_)) break;
    ::close(descriptor_);
  }
  const std::string process = std::to_string(::getpid());
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, process.data(), process.size(), 0) < 0) {
  }  // the number serves the message of another run only
  remove_orphans(folder);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : file_(std::move(other.file_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ < 0) return;
  ::unlink(file_.c_str());
  ::close(descriptor_);
}

}  // namespace lockstep
