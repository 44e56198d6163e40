// Readers of a call's files in memory; a page has no others.
#include <cstring>

#include "core/platform/web/memory_files.hpp"
#include "io/text/file.hpp"
#include "io/text/unpack.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {

namespace {

using Bytes = std::span<const std::byte>;

/// Contents of open files by descriptor.
std::map<int, Bytes>& open_files() {
  static std::map<int, Bytes> all;
  return all;
}
template <class Content>
Content content_of(const std::filesystem::path& path, const char* expected, Content content = {}) {
  const InputFile file(path, expected);
  content.resize(file.size());
  read_at(file.descriptor(), 0, std::as_writable_bytes(std::span(content)));
  return content;
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path, const char* expected)
    : path_(path), expected_(expected), descriptor_(0), regular_(true) {
  const platform::MemoryFiles* const files = platform::memory_files();
  if (!files || !files->given.contains(platform::memory_name(path)))
    throw InputError("file " + path.native(), "lockstep.js",
                     "{ name, bytes } of " + std::string(expected) + ": a page has no files of its own");
  const Bytes content = files->given.at(platform::memory_name(path));
  descriptor_ = open_files().empty() ? 0 : open_files().rbegin()->first + 1;
  size_ = content.size();
  open_files()[descriptor_] = content;
}
InputFile::~InputFile() { open_files().erase(descriptor_); }
void InputFile::fail(int) const { throw InputError("cannot read the file", path_.native(), expected_); }

bool read_at(int descriptor, uint64_t offset, std::span<std::byte> bytes) {
  const Bytes content = open_files().at(descriptor);
  if (offset > content.size() || bytes.size() > content.size() - offset) return false;
  if (!bytes.empty()) std::memcpy(bytes.data(), content.data() + offset, bytes.size());
  return true;
}

bool write_at(int, uint64_t, std::span<const std::byte>) { return false; }

std::vector<std::byte> read_file(const std::filesystem::path& path, const char* expected) {
  return content_of<std::vector<std::byte>>(path, expected);
}
std::string read_text_file(const std::filesystem::path& path, const char* expected) {
  return content_of<std::string>(path, expected);
}

// The page has the browser's decompressor.
std::string unpack_text(std::string bytes, std::string_view where) {
  if (bytes.starts_with("\x1f\x8b") || bytes.starts_with("BZh"))
    throw InputError("a packed file", where, "its unpacked content, as DecompressionStream gives it");
  return bytes;
}

}  // namespace lockstep::io
