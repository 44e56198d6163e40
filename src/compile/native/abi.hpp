// The interface between compiled kernels and their caller: plain data at fixed offsets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::compile::simd {

/// Arguments of one launch.
struct Frame {
  struct Buffer {
    void* data;
    int64_t shape[4];    // slowest axis first
    int64_t strides[4];  // elements
    int64_t bytes;       // from the first element to the end of the last
  };
  int32_t extent[3];  // of the whole domain, x first
  int32_t alone;      // 1: no other thread runs atomics on these buffers meanwhile
  uint32_t large;     // bit per buffer: only written, and larger than the caches
  uint64_t scalars[64];
  Buffer buffers[32];
  /// Left by kernels that check their accesses: 0, or the number of an access outside of its array (from 1 on) in the
  /// high half and the low half of its index in the other.
  uint64_t fault;
};

/// A box of points or groups, x first: low <= index < high.
struct Box {
  int32_t low[3];
  int32_t high[3];
};

/// `scratch` holds shared arrays, what lives across barriers and large local arrays of one thread.
using KernelFunction = void (*)(const Frame* frame, const Box* box, void* scratch);

inline constexpr int kAlignment = 64;
/// Alignment of scratch memory: a vector of 16 lanes of 64 bits.
inline constexpr int kScratchAlignment = 128;
/// Readable bytes behind and before a buffer's elements.
inline constexpr int kPadding = 128;

}  // namespace lockstep::compile::simd
