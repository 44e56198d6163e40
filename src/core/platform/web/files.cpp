// The page has no files: writers are refused.
#include <fmt/format.h>

#include "core/files/atomic_file.hpp"
#include "core/files/cache_key.hpp"
#include "core/files/output_files.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

namespace {
[[noreturn]] void refuse(const std::filesystem::path& target) {
  throw InputError(fmt::format("file {}", target.native()), "web", "results as arrays: a page has no files");
}
}  // namespace

AtomicPath::AtomicPath(std::filesystem::path target) { refuse(target); }
AtomicPath::~AtomicPath() = default;
void AtomicPath::commit() {}
AtomicFile::AtomicFile(std::filesystem::path target) { refuse(target); }
AtomicFile::~AtomicFile() = default;
void AtomicFile::write_at(int64_t, std::span<const std::byte>) {}
void AtomicFile::resize(int64_t) {}
void AtomicFile::write(std::span<const std::byte>) {}
void AtomicFile::commit() {}
void write_file(const std::filesystem::path& target, std::span<const std::byte>) { refuse(target); }
void write_file(const std::filesystem::path& target, std::string_view) { refuse(target); }
void write_private_file(const std::filesystem::path& target, std::string_view) { refuse(target); }
std::optional<std::string> read_private_file(const std::filesystem::path&, uint64_t, std::string&) {
  return std::nullopt;
}
bool is_folder(const std::filesystem::path&) { return false; }

}  // namespace lockstep
