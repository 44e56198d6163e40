// Whole files as bytes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::io {

/// The file's bytes. Throws InputError if it is absent, a folder or unreadable; `expected` says what it
/// should be.
std::vector<std::byte> read_file(const std::filesystem::path& path, const char* expected = "a readable file");
std::string read_text_file(const std::filesystem::path& path, const char* expected = "a readable text file");

}  // namespace lockstep::io
