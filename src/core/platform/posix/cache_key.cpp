#include "core/files/cache_key.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "core/files/atomic_file.hpp"
#include "core/files/folder.hpp"
#include "core/platform/posix/file_limit.hpp"
#include "lockstep/error.hpp"

namespace lockstep {
namespace fs = std::filesystem;
namespace {

constexpr const char* kKeyName = "cache.key";

/// The same of one folder or link.
std::string why_unsafe_at(const fs::path& path, bool last) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return {};  // still to be made, by this user
  if (status.st_uid != 0 && status.st_uid != ::geteuid())
    return fmt::format("{} belongs to another user", path.string());
  if (S_ISLNK(status.st_mode)) return {};
  const bool shared = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (shared && (last || (status.st_mode & S_ISVTX) == 0))
    return fmt::format("others may write to {}", path.string());
  return {};
}

std::optional<HashKey> read_key(const Folder& folder) {
  const int file = folder.open_regular(kKeyName);
  if (file < 0) return std::nullopt;
  struct stat status{};
  HashKey key{};
  const bool ok = ::fstat(file, &status) == 0 && status.st_uid == ::geteuid() && status.st_nlink == 1 &&
                  (status.st_mode & (S_IRWXG | S_IRWXO)) == 0 && status.st_size == sizeof key &&
                  ::read(file, key.data(), sizeof key) == sizeof key;
  ::close(file);
  return ok ? std::optional(key) : std::nullopt;
}

/// Of two processes that make it at once both use the first one's.
std::optional<HashKey> made_key(const Folder& folder) {
  HashKey key{};
  std::string name;
  const int file = folder.make_temporary(kKeyName, name);
  if (file < 0) return std::nullopt;
  const FileLimitHeld limit;
  const bool whole = ::getrandom(key.data(), sizeof key, 0) == sizeof key &&
                     ::write(file, key.data(), sizeof key) == sizeof key && ::fsync(file) == 0;
  ::close(file);
  const int at = folder.descriptor();
  // A second name would have the key refused by a process that reads it at that moment, so it is the second choice.
  if (whole && ::renameat2(at, name.c_str(), at, kKeyName, RENAME_NOREPLACE) != 0 && errno == EINVAL &&
      ::linkat(at, name.c_str(), at, kKeyName, 0) != 0 && errno != EEXIST)
    ::renameat(at, name.c_str(), at, kKeyName);
  ::unlinkat(at, name.c_str(), 0);
  return read_key(folder);
}

std::optional<HashKey> key_in(const fs::path& path) {
  if (!path.is_absolute() || !why_unsafe(path).empty() || make_private_folder(path) != 0) return std::nullopt;
  try {
    const Folder folder = Folder::open(path);
    const auto key = read_key(folder);
    return key ? key : made_key(folder);
  } catch (const InputError&) { return std::nullopt; }
}

}  // namespace

std::string why_unsafe(const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(folder, error);
  if (error) return error.message();
  for (const fs::path& path : {folder, real}) {
    fs::path at;
    for (auto part = path.begin(); part != path.end(); ++part) {
      at /= *part;
      if (std::string why = why_unsafe_at(at, at == path); !why.empty()) return why;
    }
  }
  return {};
}

int make_private_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0) return 0;
  const int error = errno;
  if (error == EEXIST) return fs::is_directory(folder) ? 0 : ENOTDIR;
  if (error != ENOENT || !folder.has_relative_path()) return error;
  if (const int above = make_private_folder(folder.parent_path())) return above;
  return ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
}

std::optional<std::string> read_private_file(const fs::path& name, uint64_t most, std::string& why) {
  std::error_code error;
  const fs::path path = fs::absolute(name, error);
  if (error || !fs::exists(fs::symlink_status(path, error))) return std::nullopt;
  if (why = why_unsafe(path.parent_path()); !why.empty()) return std::nullopt;
  const int file = Folder::open(path.parent_path()).open_regular(path.filename().string());
  struct stat status{};
  std::string text;
  if (file < 0 || ::fstat(file, &status) != 0)
    why = "not a regular file that this user may read";
  else if (status.st_uid != ::geteuid() || status.st_nlink != 1 ||
           (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    why = "others can write to it";
  else if (uint64_t(status.st_size) > most)
    why = fmt::format("{} bytes, more than {}", status.st_size, most);
  else if (text.resize(size_t(status.st_size));
           ::read(file, text.data(), text.size()) != ssize_t(text.size()))
    why = "it cannot be read";
  if (file >= 0) ::close(file);
  return why.empty() ? std::optional(std::move(text)) : std::nullopt;
}

void write_private_file(const fs::path& file, std::string_view text) {
  if (file.has_parent_path()) make_private_folder(fs::absolute(file).parent_path());
  write_file(file, text);
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
}

std::optional<HashKey> cache_key(const fs::path& cache) {
  const auto home = [](const char* variable, const char* below) {
    const char* text = std::getenv(variable);
    return text && *text ? fs::path(text) / below : fs::path();
  };
  fs::path config = home("XDG_CONFIG_HOME", "lockstep");
  if (!config.is_absolute()) config = home("HOME", ".config/lockstep");
  if (const auto key = key_in(config)) return key;
  return key_in(cache);
}

}  // namespace lockstep
