// Output files that appear whole or not at all: written beside the target, then renamed over it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace lockstep {

/// Chooses a temporary name beside `target`, makes missing parent folders, and renames on commit.
/// For writers that open files by name. Without commit the temporary file is removed.
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
  bool direct_ = false, done_ = false;
};

/// A file written in sequence and published by commit(). Throws InputError when the disk refuses.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void commit();
  const std::filesystem::path& target() const { return path_.target(); }

 private:
  AtomicPath path_;
  int descriptor_ = -1;
};

void write_file(const std::filesystem::path& target, std::span<const std::byte> bytes);
void write_file(const std::filesystem::path& target, std::string_view text);

}  // namespace lockstep
