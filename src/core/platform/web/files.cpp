// Writers of a page's files in memory; without such files they are refused.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/files/atomic_file.hpp"
#include "core/files/cache_key.hpp"
#include "core/files/output_files.hpp"
#include "core/platform/web/memory_files.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

platform::MemoryFiles*& platform::memory_files() {
  static MemoryFiles* files = nullptr;
  return files;
}

int64_t platform::bytes_in_memory(const std::string& name) {
  const MemoryFiles* const files = memory_files();
  if (files && files->written.contains(name)) return int64_t(files->written.at(name).size());
  return files && files->given.contains(name) ? int64_t(files->given.at(name).size()) : -1;
}

namespace {

[[noreturn]] void refuse(const std::filesystem::path& target) {
  throw InputError(fmt::format("file {}", target.native()), "web", "results as arrays: a page has no files");
}
std::string& file_of(const std::filesystem::path& target) {
  if (!platform::memory_files()) refuse(target);
  return platform::memory_files()->written[platform::memory_name(target)];
}

/// Contents of open files by descriptor.
std::map<int, std::string>& open_files() {
  static std::map<int, std::string> all;
  return all;
}

}  // namespace

AtomicPath::AtomicPath(std::filesystem::path target) { refuse(target); }
AtomicPath::~AtomicPath() = default;
void AtomicPath::commit() {}
AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  if (!platform::memory_files()) refuse(target_);
  descriptor_ = open_files().empty() ? 0 : open_files().rbegin()->first + 1;
  open_files()[descriptor_];
}
AtomicFile::~AtomicFile() { open_files().erase(descriptor_); }
void AtomicFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  std::string& content = open_files().at(descriptor_);
  content.resize(std::max(content.size(), size_t(offset) + bytes.size()));
  if (!bytes.empty()) std::memcpy(content.data() + offset, bytes.data(), bytes.size());
}
void AtomicFile::resize(int64_t bytes) { open_files().at(descriptor_).resize(size_t(bytes)); }
void AtomicFile::write(std::span<const std::byte> bytes) {
  write_at(int64_t(open_files().at(descriptor_).size()), bytes);
}
void AtomicFile::commit() { file_of(target_) = std::move(open_files().at(descriptor_)); }
void write_file(const std::filesystem::path& target, std::span<const std::byte> bytes) {
  write_file(target, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}
void write_file(const std::filesystem::path& target, std::string_view text) { file_of(target) = text; }
void write_private_file(const std::filesystem::path& target, std::string_view) { refuse(target); }
std::optional<std::string> read_private_file(const std::filesystem::path&, uint64_t, std::string&) {
  return std::nullopt;
}
void make_output_folder(const std::filesystem::path& folder) {
  if (!platform::memory_files()) refuse(folder);
}
ScratchFile::ScratchFile(const std::filesystem::path& target) { refuse(target); }
ScratchFile::~ScratchFile() = default;
bool is_folder(const std::filesystem::path&) { return false; }

}  // namespace lockstep
