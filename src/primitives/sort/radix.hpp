// Kernels of one pass of the radix sort: counts of the digits of each chunk, and the stable scatter to the scanned counts.
#pragma once

#include "lockstep/kernel/dynamic.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::primitives {

/// How a chunk is ranked; a stable sort has one result, so the bits are the same. `serial`: one lane, element by element,
/// for a CPU. `wide` and `narrow`: a group, 16 and 8 elements a lane through shared memory, for GPUs with more and with
/// less of it.
enum class Radix : uint8_t { serial, wide, narrow };
inline constexpr Radix kRadixForms[] = {Radix::serial, Radix::wide, Radix::narrow};
Radix radix_form(const Device& device);
/// Elements of a chunk.
int64_t radix_chunk(Radix form, int64_t count);

/// The most bits of a pass's digit.
inline constexpr int kDigitBits = 8;

/// Data that move with the keys: nothing, the positions of the keys, or values.
enum class Payload : uint8_t { none, positions, values };

/// counts[digit chunks + chunk] of `keys` (u32, i32, f32). Numbers: shift, mask, chunk.
Kernel digit_counts_kernel(Radix form, Storage keys);
/// Keys and their payload to the positions that `starts` gives, the exclusive scan of the counts. The same numbers.
Kernel digit_scatter_kernel(Radix form, Storage keys, Payload payload, Storage values);

}  // namespace lockstep::primitives
