// Streams of whole numbers, coded by rANS (Duda 2013) with interleaved lanes: the format that every device writes
// and reads. Plain arithmetic of the format, shared by kernels' callers and the reference.
//
// Numbers u32 are in an array (frames, rows, columns), small ones being likely. Each frame is cut into tiles; a
// lane codes one tile, row by row, with a state of its own: 32 bits, renormalised by words of 16. A number is a
// token and, from 16 on, the bits below its two highest. Tokens have the frequencies of a context, which the
// numbers to the left and above in the tile give.
//
// Bytes, little-endian: "LSR1"; frames, rows, columns, divisor (u32); for each context the number of tokens
// up to the last one used (u8) and their frequencies (u16), which sum to 4096 or are none; words (u32); for each
// lane its words (u16) and its last state (u32); the words (u16), lane by lane, in the order of reading.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::flow {

inline constexpr uint32_t kTokens = 72, kTableBits = 12, kTableSize = 1u << kTableBits, kRansLow = 1u << 16;
inline constexpr uint32_t kContexts = 28;           // before division
inline constexpr uint32_t kLargestSize = 1u << 20;  // numbers count no more than this for contexts
inline constexpr int64_t kTileNumbers = 2048;
inline constexpr int64_t kMostWords = 3 * kTileNumbers + 4;  // of a lane: 42 bits a number at most

struct RansShape {
  int64_t frames = 0, rows = 0, columns = 0;
  int64_t numbers() const { return frames * rows * columns; }
  int64_t tile_rows() const;
  int64_t tile_columns() const;
  int64_t tiles_y() const;
  int64_t tiles_x() const;
  int64_t lanes() const { return frames * tiles_y() * tiles_x(); }
  /// Contexts that share a table: few numbers cannot pay for many.
  uint32_t divisor() const;
  uint32_t contexts() const { return (kContexts + divisor() - 1) / divisor(); }
};

/// Frequencies out of 4096, one row of kTokens a context; a used token has at least 1.
std::vector<uint32_t> rans_frequencies(std::span<const uint32_t> counts, uint32_t contexts);

struct RansStream {
  RansShape shape;
  std::vector<uint32_t> frequencies;  // (contexts, kTokens)
  std::vector<uint32_t> counts, states;
  std::vector<uint32_t> words;  // two in each, the first in the low half
  int64_t word_count = 0;
};
std::vector<uint8_t> pack_stream(const RansStream& stream);
/// Throws InputError for bytes that are no such stream or not of that shape.
RansStream parse_stream(std::span<const uint8_t> bytes, const RansShape& shape, std::string_view where);

}  // namespace lockstep::flow
