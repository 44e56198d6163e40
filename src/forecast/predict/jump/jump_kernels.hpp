// Kernels of jumps. The parameters (n) are cut into chunks of at most kJumpChunk elements of one tensor
// each; the ring (rows, n) holds snapshots, the newest in row `newest` and older ones in the rows before it, cyclically.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/nn/model.hpp"

namespace lockstep::forecast {

inline constexpr int kJumpLanes = 256, kJumpChunk = 8192, kMostSnapshots = 8;

/// tensor, first element, end: (chunks, 3) as i32.
std::vector<int32_t> jump_chunks(std::span<const nn::ParameterTensor> tensors);

/// Products of differences i <= j, row by row of the upper triangle.
inline int gram_pairs(int differences) { return differences * (differences + 1) / 2; }

/// (ring, chunks, partial (chunks, pairs), newest): each chunk's part of the Gram matrix of the `snapshots` - 1
/// differences of neighbouring snapshots. Lane l of 256 goes over the chunk's elements l, l + 256 … by fma, then the
/// lanes by the tree of group_sum.
Kernel gram_kernel(Storage ring, int snapshots);
/// (ring, chunks, base (n), factors (tensors, snapshots - 1), to (n), newest):
/// to = base + sum over j of factors[tensor, j] d_j, the sum by fma from 0, newest difference first.
Kernel move_kernel(Storage ring, int snapshots);
/// (ring, places (count) of elements, to (count, snapshots - 1), newest): their differences, newest first.
Kernel sample_kernel(Storage ring, int snapshots);
/// (ring, chunks, base (n), scales (tensors), weights of a DirectionNetwork of `taps` and `units`, to (n), newest,
/// units, count, last, most): to = base + scales[tensor] (y_1 + … + y_count-1 + last y_count), y the differences that
/// the network predicts one after the other in units of the scale; none beyond `most` times the largest that it comes
/// from.
Kernel follow_kernel(Storage ring, int taps);
/// (chunks, base (n), lengths (tensors), to (n), draw, key): to = base +- lengths[tensor], by random signs.
Kernel scatter_kernel(Storage parameters);
/// (ring, to (n), newest): mean of the newest `snapshots`.
Kernel average_kernel(Storage ring, int snapshots);
/// (x (n), row (n)): a snapshot, rounded to the ring's elements.
Kernel snapshot_kernel(Storage parameters, Storage ring);

/// Elements that sums over a ring have: f64 for f64, else f32.
Storage value_storage(Storage ring);

/// A random word of element `i` in draw `draw`.
template <class U>
U random_word(U i, U draw, U key) {
  const auto mix =
      [](U h) {  // The finaliser of MurmurHash3 (public domain): every input bit reaches every output bit.
        h = (h ^ (h >> U(16))) * U(0x85EBCA6Bu);
        h = (h ^ (h >> U(13))) * U(0xC2B2AE35u);
        return h ^ (h >> U(16));
      };
  return mix(mix(i ^ key) + draw * U(0x9E3779B9u));
}

}  // namespace lockstep::forecast
