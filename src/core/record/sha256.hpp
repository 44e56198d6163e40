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

using Sha256State = std::array<uint32_t, 8>;
/// Takes 64 bytes into the state, as the standard writes it.
void sha256_block(Sha256State& state, const std::byte* bytes);
/// The same by the processor's own instructions where it has them, else sha256_block.
using Sha256Block = void (*)(Sha256State& state, const std::byte* bytes);
Sha256Block fastest_sha256_block();

class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }
  /// 64 lower-case hexadecimal digits; the object takes no more afterwards.
  std::string finish();

 private:
  const Sha256Block block_ = fastest_sha256_block();
  Sha256State state_;
  std::array<std::byte, 64> rest_{};
  uint64_t length_ = 0;
};

std::string sha256(std::span<const std::byte> bytes);
std::string sha256(std::string_view text);
/// Throws InputError where the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace lockstep::record
