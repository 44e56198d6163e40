// The page has no files: writers are refused.
#include <fmt/format.h>

#include "core/files/atomic_file.hpp"
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
AtomicFile::AtomicFile(std::filesystem::path target) : path_(std::move(target)) {}
AtomicFile::~AtomicFile() = default;
void AtomicFile::write(std::span<const std::byte>) {}
void AtomicFile::commit() {}
void write_file(const std::filesystem::path& target, std::span<const std::byte>) { refuse(target); }
void write_file(const std::filesystem::path& target, std::string_view) { refuse(target); }

}  // namespace lockstep
