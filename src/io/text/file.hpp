// Whole files as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lockstep::io {

/// A file that is open for reading. Throws InputError if it is absent, a folder or unreadable; `expected` says what it
/// should be.
class InputFile {
 public:
  InputFile(const std::filesystem::path& path, const char* expected);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  int descriptor() const { return descriptor_; }
  bool is_regular() const { return regular_; }
  uint64_t size() const { return size_; }
  [[noreturn]] void fail(int error) const;

 private:
  const std::filesystem::path path_;
  const char* expected_;
  int descriptor_;
  bool regular_ = false;
  uint64_t size_ = 0;
};

/// All of the bytes at a place of a file; false where they cannot be read or written.
bool read_at(int descriptor, uint64_t offset, std::span<std::byte> bytes);
bool write_at(int descriptor, uint64_t offset, std::span<const std::byte> bytes);

/// The file's bytes. Throws InputError if it is absent, a folder or unreadable; `expected` says what it
/// should be.
std::vector<std::byte> read_file(const std::filesystem::path& path, const char* expected = "a readable file");
std::string read_text_file(const std::filesystem::path& path, const char* expected = "a readable text file");

}  // namespace lockstep::io
