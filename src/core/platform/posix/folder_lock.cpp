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

void remove_orphans(const Folder& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder.pinned(), error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const pid_t owner = owner_of_part(name);
    if (owner != 0 && ::kill(owner, 0) != 0 && errno == ESRCH) folder.remove(name);
  }
}

/// Whether the name still is that of the open file: its holder removes it when it lets go.
bool names(const Folder& folder, int descriptor) {
  struct stat by_name{}, by_descriptor{};
  return ::fstatat(folder.descriptor(), kLockName, &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(descriptor, &by_descriptor) == 0 && by_name.st_ino == by_descriptor.st_ino &&
         by_name.st_dev == by_descriptor.st_dev;
}

/// A lock file has one name: a link, or a second name of a file elsewhere, was planted.
bool is_own_file(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink <= 1;
}

std::string holder(int descriptor) {
  char text[32] = "";
  const ssize_t length = ::pread(descriptor, text, sizeof text - 1, 0);
  return length > 0 ? fmt::format("process {}", std::string_view(text, static_cast<size_t>(length)))
                    : "another process";
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) : folder_(Folder::of_output(folder / kLockName)) {
  const auto refuse = [&](const std::string& what, const char* expected) {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    throw InputError(what, folder.string(), expected);
  };
  while (true) {
    descriptor_ = ::openat(folder_.descriptor(), kLockName,
                           O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (descriptor_ < 0 && errno != ELOOP)
      refuse(fmt::format("cannot lock the folder: {}", std::strerror(errno)), "a folder that can be written");
    if (descriptor_ < 0 || (!is_own_file(descriptor_) && names(folder_, descriptor_)))
      refuse(fmt::format("{} is a link", kLockName), "a folder in which only Lockstep creates this file");
    // A file system without locks grants all.
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      refuse(fmt::format("{} is writing its results here", holder(descriptor_)),
             "a separate folder for each run");
    if (names(folder_, descriptor_)) break;
    ::close(descriptor_);
  }
  const std::string process = std::to_string(::getpid());
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, process.data(), process.size(), 0) < 0) {
  }  // the number serves the message of another run only
  remove_orphans(folder_);
  hold_output_folder(folder_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : folder_(std::move(other.folder_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ < 0) return;
  ::unlinkat(folder_.descriptor(), kLockName, 0);
  ::close(descriptor_);
}

}  // namespace lockstep
