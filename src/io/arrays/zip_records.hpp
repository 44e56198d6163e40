// Signatures, methods and checksums of ZIP archives.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace lockstep::io::zip {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint16_t kStored = 0, kDeflated = 8, kZip64Field = 1;
constexpr uint64_t kIn64 = 0xffffffffu;

/// Continues from the checksum of the bytes before.
inline uint32_t crc_of(std::span<const std::byte> bytes, uLong crc = crc32(0, nullptr, 0)) {
  while (!bytes.empty()) {
    const auto chunk = bytes.first(std::min<size_t>(bytes.size(), 1u << 30));
    crc = crc32(crc, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size()));
    bytes = bytes.subspan(chunk.size());
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace lockstep::io::zip
