// Output files that appear whole or not at all: written next to the target, then renamed over it. A link that has the
// target's name is replaced, never followed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/files/folder.hpp"

namespace lockstep {

/// For writers that open files by name: a name in a private folder next to `target`, which commit() renames. Without
/// commit both are removed. Missing parent folders are made.
class AtomicPath {
 public:
  /// Throws InputError if the target is a folder or its folder cannot be made.
  explicit AtomicPath(std::filesystem::path target);
  ~AtomicPath();
  AtomicPath(const AtomicPath&) = delete;
  AtomicPath& operator=(const AtomicPath&) = delete;

  const std::filesystem::path& target() const { return target_; }
  /// The name to write to. It is the target itself where that is a device or a pipe.
  const std::filesystem::path& temporary() const { return temporary_; }
  /// Flushes the file to disk and renames it over the target.
  void commit();

 private:
  std::filesystem::path target_, temporary_;
  Folder folder_, own_;
  std::string own_name_;  // of the private folder
  bool done_ = false;
};

/// A file that is published by commit(). Throws InputError when the disk refuses.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// In sequence.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// At a place of its own; any thread.
  void write_at(int64_t offset, std::span<const std::byte> bytes);
  void resize(int64_t bytes);
  void commit();
  const std::filesystem::path& target() const { return target_; }

 private:
  std::filesystem::path target_;
  Folder folder_;     // none: the target is a device or a pipe
  std::string name_;  // of the temporary file
  int descriptor_ = -1;
};

void write_file(const std::filesystem::path& target, std::span<const std::byte> bytes);
void write_file(const std::filesystem::path& target, std::string_view text);

}  // namespace lockstep
