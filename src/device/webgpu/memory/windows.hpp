// Where the bytes of a buffer lie among the adapter's buffers and how bindings cover them: arithmetic alone.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep::device::webgpu {

/// The bindings of a buffer: `count` windows one after the other from byte `first` of the memory, the first element
/// `base_bytes` behind it.
struct Windows {
  int64_t first = 0, base_bytes = 0;
  int count = 1;
};
/// One window from the last aligned byte on where that reaches, else whole windows. Memory consists of chunks, each of
/// whole windows.
inline Windows windows_of(int64_t offset_bytes, int64_t span_bytes, int64_t window_bytes,
                          int64_t chunk_bytes) {
  constexpr int64_t kAlignment = 256;
  const int64_t aligned = offset_bytes & ~(kAlignment - 1);
  const int64_t end = offset_bytes + std::max<int64_t>(span_bytes, 1);
  if (aligned / chunk_bytes == (end - 1) / chunk_bytes && end - aligned <= window_bytes)
    return {aligned, offset_bytes - aligned, 1};
  const int64_t first = offset_bytes / window_bytes, last = (end - 1) / window_bytes;
  return {first * window_bytes, offset_bytes - first * window_bytes, int(last - first + 1)};
}

/// A part of one chunk, in whole words.
struct ChunkPart {
  int64_t chunk, inside, bytes;
};
inline ChunkPart chunk_part(int64_t offset, int64_t bytes_wanted, int64_t chunk_bytes, int64_t memory_bytes) {
  const int64_t chunk = offset / chunk_bytes, inside = offset % chunk_bytes;
  const int64_t chunk_size = std::min(chunk_bytes, memory_bytes - chunk * chunk_bytes);
  return {chunk, inside,
          std::min((bytes_wanted + 3) & ~int64_t(3), std::max<int64_t>(chunk_size, 4) - inside)};
}

/// Groups along x and y that hold `groups` of a domain of one axis, the fewest beyond it; full where it is as many as
/// fit.
struct Folded {
  int64_t x = 1, y = 1;
};
inline Folded fold(int64_t groups, int64_t limit) {
  const int64_t rows = std::max<int64_t>((groups + limit - 1) / limit, 1);
  return {(groups + rows - 1) / rows, rows};
}

}  // namespace lockstep::device::webgpu
