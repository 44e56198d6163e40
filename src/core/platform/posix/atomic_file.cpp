#include "core/files/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/files/output_files.hpp"
#include "lockstep/error.hpp"

namespace lockstep {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(std::string_view what, const fs::path& path, int error) {
  throw InputError(fmt::format("{}: {}", what, std::strerror(error)), path.string(),
                   "a folder that can be written and has room");
}

std::vector<fs::path>& kept_whole() {
  static std::vector<fs::path> files;
  return files;
}

/// The status of a target that a file may be put over. Throws InputError for any other.
fs::file_status checked_target(const fs::path& target) {
  std::error_code ignored;
  const fs::file_status status = fs::status(target, ignored);
  if (target.empty() || fs::is_directory(status) || !target.has_filename())
    throw InputError("cannot write a file here", target.string(), "the name of a file, not of a folder");
  if (fs::is_regular_file(status))
    for (const fs::path& input : kept_whole())
      if (fs::equivalent(target, input, ignored))
        throw InputError("this file is an input", target.string(), "another name, so that the input stays");
  return status;
}

/// The nearest folder that exists on the way to `path` must let things be made in it.
void check_parents(const fs::path& path) {
  std::error_code error;
  fs::path at = fs::absolute(path, error).lexically_normal();
  while (!fs::exists(fs::status(at, error)) && at.has_relative_path()) at = at.parent_path();
  if (!fs::is_directory(at, error)) fail("not a folder", at, ENOTDIR);
  if (::access(at.c_str(), W_OK | X_OK) != 0) fail("cannot write here", at, errno);
}

}  // namespace

void keep_nothing() { kept_whole().clear(); }
void keep_whole(fs::path input) { kept_whole().push_back(std::move(input)); }

void check_output_file(const fs::path& file) {
  const fs::file_status status = checked_target(file);
  if (fs::exists(status) && !fs::is_regular_file(status)) return;  // a device or a pipe
  std::error_code ignored;
  check_parents(fs::absolute(file, ignored).parent_path());
}

void check_output_folder(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored))
    throw InputError("a file stands in the way", folder.string(), "a folder, or a name that is free");
  check_parents(folder);
}

AtomicPath::AtomicPath(fs::path target) : target_(std::move(target)) {
  std::error_code ignored;
  const fs::file_status status = checked_target(target_);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    direct_ = true;
    temporary_ = target_;
    return;
  }
  if (fs::is_symlink(fs::symlink_status(target_, ignored))) {
    const fs::path real = fs::weakly_canonical(target_, ignored);
    if (!ignored) target_ = real;
  }
  if (target_.has_parent_path()) {
    std::error_code error;
    fs::create_directories(target_.parent_path(), error);
    if (error) fail("cannot make the folder", target_.parent_path(), error.value());
  }
  static std::atomic<unsigned> counter{0};
  temporary_ = target_.parent_path() /
               fmt::format(".{}.{}-{}.part", target_.filename().string(), ::getpid(), counter.fetch_add(1));
}

AtomicPath::~AtomicPath() {
  if (done_ || direct_) return;
  ::unlink(temporary_.c_str());
}

void AtomicPath::commit() {
  if (done_) return;
  if (!direct_) {
    const int descriptor = ::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) fail("cannot read the file back", temporary_, errno);
    const bool flushed = ::fsync(descriptor) == 0;
    const int error = errno;
    ::close(descriptor);
    if (!flushed) fail("cannot flush the file", target_, error);
    if (::rename(temporary_.c_str(), target_.c_str()) != 0)
      fail("cannot put the file in place", target_, errno);
  }
  done_ = true;
}

AtomicFile::AtomicFile(fs::path target) : path_(std::move(target)) {
  descriptor_ = ::open(path_.temporary().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot create the file", path_.target(), errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot write the file", path_.target(), written == 0 ? ENOSPC : errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::commit() {
  if (descriptor_ >= 0) {
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail("cannot close the file", path_.target(), errno);
  }
  path_.commit();
}

void write_file(const fs::path& target, std::span<const std::byte> bytes) {
  AtomicFile file(target);
  file.write(bytes);
  file.commit();
}

void write_file(const fs::path& target, std::string_view text) {
  write_file(target, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace lockstep
