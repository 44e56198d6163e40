#include "core/files/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "core/files/output_files.hpp"
#include "core/platform/posix/file_limit.hpp"
#include "core/record/journal.hpp"
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

/// Whether a target is written as it is, for it is a device or a pipe. A link leads to one only in the system's own
/// folders. Throws InputError where no file can be put.
bool checked_target(const fs::path& target) {
  std::error_code ignored;
  const fs::file_status status = fs::status(target, ignored), own = fs::symlink_status(target, ignored);
  if (target.empty() || fs::is_directory(status) || !target.has_filename())
    throw InputError("cannot write a file here", target.string(), "the name of a file, not of a folder");
  if (fs::is_regular_file(status))
    for (const fs::path& input : kept_whole())
      if (fs::equivalent(target, input, ignored))
        throw InputError("this file is an input", target.string(),
                         "another name, so that the input is not overwritten");
  if (!fs::is_symlink(own)) return fs::exists(own) && !fs::is_regular_file(own);
  const std::string whole = fs::absolute(target, ignored).lexically_normal().string();
  return whole.starts_with("/dev/") || whole.starts_with("/proc/");
}

/// Permissions of files that others may read, as far as the user lets them.
mode_t ordinary_mode() {
  static const mode_t mode = [] {
    std::ifstream status("/proc/self/status");
    unsigned mask = 022;
    for (std::string word; status >> word;)
      if (word == "Umask:") status >> std::oct >> mask;
    return mode_t(0666 & ~mask);
  }();
  return mode;
}

/// Flushes a temporary file to disk and gives it its name.
void publish(int descriptor, const Folder& from, const std::string& name, const Folder& to,
             const fs::path& target) {
  if (::fsync(descriptor) != 0) fail("cannot flush the file", target, errno);
  ::fchmod(descriptor, ordinary_mode());  // a file system without permissions refuses
  if (::renameat(from.descriptor(), name.c_str(), to.descriptor(), target.filename().c_str()) != 0)
    fail("cannot put the file in place", target, errno);
  journal::output(target);
}

/// The nearest folder that exists on the way to `path` must let things be made in it.
void check_parents(const fs::path& path) {
  std::error_code error;
  fs::path at = fs::absolute(path, error).lexically_normal();
  while (!fs::exists(fs::status(at, error)) && at.has_relative_path()) {
    if (fs::is_symlink(fs::symlink_status(at, error)))
      throw InputError("a link without a target", at.string(), "a folder, or an unused name");
    at = at.parent_path();
  }
  if (!fs::is_directory(at, error)) fail("not a folder", at, ENOTDIR);
  if (::access(at.c_str(), W_OK | X_OK) != 0) fail("cannot write here", at, errno);
}

}  // namespace

void keep_nothing() { kept_whole().clear(); }
void keep_whole(fs::path input) { kept_whole().push_back(std::move(input)); }

void check_output_file(const fs::path& file) {
  if (checked_target(file)) return;
  if (file.filename().native().size() > NAME_MAX) fail("cannot create the file", file, ENAMETOOLONG);
  std::error_code ignored;
  check_parents(fs::absolute(file, ignored).parent_path());
}

void check_output_folder(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored))
    throw InputError("a file has this name", folder.string(), "a folder, or an unused name");
  check_parents(folder);
}

AtomicPath::AtomicPath(fs::path target) : target_(std::move(target)) {
  if (checked_target(target_)) {
    temporary_ = target_;
    return;
  }
  folder_ = Folder::of_output(target_);
  own_ = folder_.make_private(target_.filename().string(), own_name_);
  temporary_ = own_.pinned() / target_.filename();
}

AtomicPath::~AtomicPath() {
  if (own_) folder_.remove(own_name_);
}

void AtomicPath::commit() {
  if (std::exchange(done_, true) || !own_) return;
  const std::string name = target_.filename().string();
  const int descriptor = own_.open_regular(name);
  if (descriptor < 0) fail("cannot read the file back", target_, errno);
  const std::shared_ptr<void> closer(nullptr, [&](void*) { ::close(descriptor); });
  publish(descriptor, own_, name, folder_, target_);
  folder_.remove(own_name_);
  own_ = {};
}

AtomicFile::AtomicFile(fs::path target) : target_(std::move(target)) {
  if (checked_target(target_)) {
    // A pipe that nobody reads would keep the opening waiting.
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor_ >= 0) ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) & ~O_NONBLOCK);
  } else {
    folder_ = Folder::of_output(target_);
    descriptor_ = folder_.make_temporary(target_.filename().string(), name_);
  }
  if (descriptor_ < 0) fail("cannot create the file", target_, errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (folder_) ::unlinkat(folder_.descriptor(), name_.c_str(), 0);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  const FileLimitHeld limit;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot write the file", target_, written == 0 ? ENOSPC : errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  const FileLimitHeld limit;
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot write the file", target_, written == 0 ? ENOSPC : errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
}

void AtomicFile::resize(int64_t bytes) {
  const FileLimitHeld limit;
  if (folder_ && ::ftruncate(descriptor_, bytes) != 0) fail("cannot write the file", target_, errno);
}

void AtomicFile::commit() {
  if (descriptor_ < 0) return;
  if (folder_) publish(descriptor_, folder_, name_, folder_, target_);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("cannot close the file", target_, errno);
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
