// SHA-256 (FIPS 180-4): the content of inputs and outputs, in a form that others' programs compute too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::record {

class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }
  /// 64 lower-case hexadecimal digits; the object takes no more afterwards.
  std::string finish();

 private:
  void block(const std::byte* bytes);
  std::array<uint32_t, 8> state_;
  std::array<std::byte, 64> rest_{};
  uint64_t length_ = 0;
};

std::string sha256(std::span<const std::byte> bytes);
std::string sha256(std::string_view text);
/// Throws InputError where the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace lockstep::record
