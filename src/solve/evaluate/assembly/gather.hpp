// Sums of the instances' local derivatives by block, in an order that the problem fixes: no atomics.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/device.hpp"

namespace lockstep::solve {

/// The instances' slots of one tangent size, as rows of a sum by block. `entries` are slot * n + instance, of
/// stored slots; ~entry where the sum takes the negative. A block with at most kFewEntries is summed by one
/// lane, entry after entry. Others are cut into chunks of kChunk entries: a tree over the chunk, then lane l
/// of kChunk adds the chunks l, l + kChunk … in order, then a tree over the lanes.
struct GatherPlan {
  static constexpr int kFewEntries = 32, kChunk = 256;

  int width = 0;      // tangent coordinates of a block
  int64_t slots = 0;  // stored slots times instances: columns of the local derivatives
  std::vector<int32_t> few_blocks,
      few_first;  // block numbers; entries of row r from first[r] to first[r + 1]
  std::vector<int32_t> many_blocks, many_first;  // the same in chunks
  std::vector<int32_t> chunk_begin, chunk_end;   // entries
  std::vector<int32_t> entries;
};

/// One occurrence of a block: its number, or -1 where it is fixed, and its entry.
struct Occurrence {
  int32_t block, entry;
};
GatherPlan plan_gather(int width, int64_t slots, int64_t blocks, const std::vector<Occurrence>& occurrences);

/// A plan on a device.
class Gather {
 public:
  Gather(const Device& device, const GatherPlan& plan);

  /// target[offset of the block + c] += sum of local[c, entry] over the block's entries, for c = 0 …
  /// components - 1. `local`: (components, slots); `few_offsets` and `many_offsets` by row of the plan.
  /// `signs`: whether ~entries count negative. `overwrite`: = instead of +=. `records`: local is
  /// (slots, components) instead.
  void add(const Buffer& local, int components, bool signs, const Buffer& few_offsets,
           const Buffer& many_offsets, const Buffer& target, bool overwrite = false,
           bool records = false) const;

  /// The same by loops on the host, of f64 on a device whose memory is the host's: `local` (components, slots).
  void add_on_host(const double* local, int components, bool signs, const Buffer& few_offsets,
                   const Buffer& many_offsets, double* target) const;

  /// The kernels that add() launches, to be traced when they are called.
  std::vector<std::function<Kernel()>> kernels(Storage storage, int components, bool signs,
                                               bool overwrite = false, bool records = false) const;

  const GatherPlan& plan() const { return plan_; }
  bool has_many() const { return !plan_.many_blocks.empty(); }

 private:
  Device device_;
  GatherPlan plan_;  // without the entries
  Buffer entries_, few_first_, many_first_, chunk_begin_, chunk_end_;
  mutable Buffer partial_;  // (components, chunks)
};

}  // namespace lockstep::solve
