// A 128-bit keyed hash (SipHash-2-4 with 128-bit output, fixed key) for cache keys and checksums.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

/// Hash of the bytes. The same on every host, since words are taken little-endian.
Hash128 hash128(std::span<const std::byte> bytes);
Hash128 hash128(std::string_view text);

/// With a key that nobody else knows this authenticates: without the key no hash of other bytes can be made.
using HashKey = std::array<uint64_t, 2>;
Hash128 hash128(const HashKey& key, std::span<const std::byte> bytes);

/// 32 lower-case hexadecimal digits, bytes in output order.
std::string to_hex(const Hash128& hash);

}  // namespace lockstep
