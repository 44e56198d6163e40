#include "core/hash.hpp"

#include <bit>

namespace lockstep {
namespace {

uint64_t load_word(const std::byte* bytes, size_t count) {
  uint64_t word = 0;
  for (size_t k = 0; k < count; ++k) word |= static_cast<uint64_t>(bytes[k]) << (8 * k);
  return word;
}

// State and round of SipHash (Aumasson and Bernstein 2012).
struct SipState {
  uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void absorb(uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
  uint64_t squeeze() {
    for (int k = 0; k < 4; ++k) round();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

}  // namespace

Hash128 hash128(std::span<const std::byte> bytes) {
  return hash128(HashKey{0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull}, bytes);
}

Hash128 hash128(const HashKey& key, std::span<const std::byte> bytes) {
  SipState state{key[0] ^ 0x736f6d6570736575ull, key[1] ^ 0x646f72616e646f6dull ^ 0xee,
                 key[0] ^ 0x6c7967656e657261ull, key[1] ^ 0x7465646279746573ull};
  const std::byte* at = bytes.data();
  const size_t words = bytes.size() / 8;
  for (size_t k = 0; k < words; ++k, at += 8) state.absorb(load_word(at, 8));
  state.absorb(load_word(at, bytes.size() % 8) | static_cast<uint64_t>(bytes.size()) << 56);
  state.v2 ^= 0xee;
  Hash128 hash;
  hash.low = state.squeeze();
  state.v1 ^= 0xdd;
  hash.high = state.squeeze();
  return hash;
}

Hash128 hash128(std::string_view text) { return hash128(std::as_bytes(std::span(text.data(), text.size()))); }

std::string to_hex(const Hash128& hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(32);
  for (uint64_t word : {hash.low, hash.high}) {
    for (int k = 0; k < 8; ++k, word >>= 8) {
      text += kDigits[word >> 4 & 15];
      text += kDigits[word & 15];
    }
  }
  return text;
}

}  // namespace lockstep
