#pragma once

#include "lockstep/device.hpp"

namespace lockstep::flow {

/// `from`, f32 or f64, in another of the two; itself where it is that already.
Buffer converted(const Device& device, const Buffer& from, Storage storage);

inline constexpr int64_t kSumChunk = 1024;  // numbers of a long row that one product sums
/// A row of factors side by side: left (chunks, m, k), right (chunks, k, n).
struct ChunkedFactors {
  Buffer left, right;
};
/// sum = the products of all chunks, m n numbers, added in order, that of `rest` (none, or one shorter chunk) last.
void add_products(const Device& device, const ChunkedFactors& whole, const ChunkedFactors& rest,
                  const Buffer& sum);

/// Kernels beyond those of primitives: of rollouts in one precision, of learning, of scores in f64.
std::vector<Kernel> surrogate_kernels(Storage storage);
std::vector<Kernel> learning_kernels();
std::vector<Kernel> scoring_kernels();

}  // namespace lockstep::flow
