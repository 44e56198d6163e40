// Readers of whole files: `parse(content, where)` within the budget of the inputs, where the file's name is `where`.
#pragma once

#include <filesystem>

#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
#include "io/text/unpack.hpp"

namespace lockstep::io {

/// `expected` says what the file should be.
template <class Parse>
auto parse_file(const std::filesystem::path& path, const char* expected, Parse parse) {
  const std::string where = path.string();
  return within_memory(where, [&] { return parse(read_file(path, expected), where); });
}
template <class Parse>
auto parse_text_file(const std::filesystem::path& path, const char* expected, Parse parse) {
  const std::string where = path.string();
  return within_memory(where, [&] { return parse(read_text_file(path, expected), where); });
}
/// Plain, or packed by gzip or bzip2.
template <class Parse>
auto parse_packed_file(const std::filesystem::path& path, const char* expected, Parse parse) {
  return parse_text_file(path, expected, [&](std::string&& bytes, const std::string& where) {
    return parse(unpack_text(std::move(bytes), where), where);
  });
}

}  // namespace lockstep::io
