// Instances in groups that share blocks, for batches whose blocks all are small Euclidean ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::solve {

/// Groups of instances that lie near each other in the graph of shared blocks. A kernel group brings its
/// blocks into shared memory once, computes its instances there and sums their derivatives by block before it
/// writes them. The plan depends on the problem alone.
struct AssemblyPlan {
  static constexpr int kLanes = 256;           // most instances, and most blocks, of a group
  static constexpr int32_t kNone = INT32_MIN;  // `write` of a fixed block
  static constexpr uint32_t kNegative = 0x8000;

  int slots = 0, stored = 0;    // slots of an instance; slots whose derivatives are stored
  std::vector<int32_t> groups;  // (groups + 1, 2): first local block, instances
  std::vector<int32_t> block;   // by local block: its number
  std::vector<int32_t> write;   // by local block: its number where no other group has it, ~row of the
                                // partial sums where one has, kNone where it is fixed
  // Local blocks of a group are sorted by falling number of entries, so adjacent lanes have similar numbers.
  std::vector<int32_t> word_first;     // (local blocks + 1)
  std::vector<uint32_t> words;         // two entries each, low half first: rank of the stored slot * kLanes +
                                       // instance, with kNegative; stored * kLanes where there is none
  std::vector<uint32_t> ids;           // ((slots + 1) / 2, groups * kLanes): local blocks of two slots
  std::vector<int64_t> order;          // by place (group * kLanes + lane): instance, or -1
  std::vector<int32_t> shared_blocks;  // by row of the partial sums: number of the block
  bool covers_all = false;             // every block is in a group, and none is fixed

  int64_t group_count() const { return int64_t(groups.size()) / 2 - 1; }
  int64_t places() const { return group_count() * kLanes; }
};

/// `blocks`: (slots, n) block numbers; `rank` and `sign` by slot: the stored slot and the sign of its
/// derivatives; `fixed` by block. Nothing where the groups would be less than half full.
std::optional<AssemblyPlan> plan_assembly(const std::vector<int32_t>& blocks, int slots, int64_t n,
                                          const std::vector<int>& rank, const std::vector<int>& sign,
                                          const std::vector<uint8_t>& fixed);

}  // namespace lockstep::solve
