#include "solve/evaluate/assembly/assembly_plan.hpp"

#include <algorithm>

namespace lockstep::solve {

namespace {

/// Grows groups breadth-first over shared blocks: near instances come together, so groups are round and
/// share few blocks with others.
class Grower {
 public:
  Grower(const std::vector<int32_t>& blocks, int slots, int64_t n, int64_t block_count)
      : blocks_(blocks),
        slots_(slots),
        n_(n),
        first_(size_t(block_count) + 1, 0),
        taken_(size_t(n), 0),
        group_of_(size_t(block_count), -1) {
    for (const int32_t b : blocks) ++first_[size_t(b) + 1];
    for (size_t b = 0; b < size_t(block_count); ++b) first_[b + 1] += first_[b];
    instances_.resize(blocks.size());
    std::vector<int64_t> next(first_.begin(), first_.end() - 1);
    for (int64_t i = 0; i < n; ++i)
      for (int s = 0; s < slots; ++s) instances_[size_t(next[size_t(block(s, i))]++)] = int32_t(i);
    open_ = std::vector<int64_t>(first_.begin(), first_.end() - 1);
  }

  struct Group {
    std::vector<int32_t> instances, blocks;
  };
  /// The next group; empty at the end.
  Group next() {
    Group group;
    ++group_;
    size_t visited = 0;  // of group.blocks, which is the queue
    while (int64_t(group.instances.size()) < kMost) {
      if (visited == group.blocks.size()) {
        const int32_t seed = find_seed();
        if (seed < 0 || !add(group, seed)) break;
        continue;
      }
      const int32_t b = group.blocks[visited++];
      bool full = false;
      for (int64_t& at = open_[size_t(b)]; at < first_[size_t(b) + 1]; ++at) {
        if (taken_[size_t(instances_[size_t(at)])]) continue;
        if (int64_t(group.instances.size()) == kMost || !add(group, instances_[size_t(at)])) {
          full = true;
          break;
        }
      }
      if (full) {
        frontier_.push_back(b);
        break;
      }
    }
    for (; visited < group.blocks.size(); ++visited) frontier_.push_back(group.blocks[visited]);
    return group;
  }

 private:
  static constexpr int64_t kMost = AssemblyPlan::kLanes;

  int32_t block(int s, int64_t i) const { return blocks_[size_t(s * n_ + i)]; }
  bool add(Group& group, int32_t i) {
    const size_t before = group.blocks.size();
    for (int s = 0; s < slots_; ++s) {
      int64_t& owner = group_of_[size_t(block(s, i))];
      if (owner == group_) continue;
      owner = group_;
      group.blocks.push_back(block(s, i));
    }
    if (int64_t(group.blocks.size()) > kMost) {
      for (size_t k = before; k < group.blocks.size(); ++k) group_of_[size_t(group.blocks[k])] = -1;
      group.blocks.resize(before);
      return false;
    }
    taken_[size_t(i)] = 1;
    group.instances.push_back(i);
    return true;
  }
  /// An instance at the edge of what is done, the oldest edge first; else the first that is left.
  int32_t find_seed() {
    for (; edge_ < frontier_.size(); ++edge_) {
      const int32_t b = frontier_[edge_];
      for (int64_t& at = open_[size_t(b)]; at < first_[size_t(b) + 1]; ++at)
        if (!taken_[size_t(instances_[size_t(at)])]) return instances_[size_t(at)];
    }
    for (; lowest_ < n_; ++lowest_)
      if (!taken_[size_t(lowest_)]) return int32_t(lowest_);
    return -1;
  }

  const std::vector<int32_t>& blocks_;
  int slots_;
  int64_t n_;
  std::vector<int64_t> first_, open_;
  std::vector<int32_t> instances_;
  std::vector<uint8_t> taken_;
  std::vector<int64_t> group_of_;
  std::vector<int32_t> frontier_;
  size_t edge_ = 0;
  int64_t lowest_ = 0, group_ = 0;
};

}  // namespace

std::optional<AssemblyPlan> plan_assembly(const std::vector<int32_t>& blocks, int slots, int64_t n,
                                          const std::vector<int>& rank, const std::vector<int>& sign,
                                          const std::vector<uint8_t>& fixed) {
  constexpr int kLanes = AssemblyPlan::kLanes;
  std::vector<Grower::Group> groups;
  std::vector<int32_t> uses(fixed.size(), 0);  // groups that have the block
  {
    Grower grower(blocks, slots, n, int64_t(fixed.size()));
    for (;;) {
      Grower::Group g = grower.next();
      if (g.instances.empty()) break;
      for (const int32_t b : g.blocks) ++uses[size_t(b)];
      groups.push_back(std::move(g));
      if (int64_t(groups.size()) * kLanes > 2 * n + kLanes) return {};
    }
  }
  AssemblyPlan plan;
  plan.slots = slots;
  plan.stored = 1 + *std::max_element(rank.begin(), rank.end());
  const int64_t places = int64_t(groups.size()) * kLanes;
  const int pairs = (slots + 1) / 2;
  plan.ids.assign(size_t(pairs * places), 0);
  plan.order.assign(size_t(places), -1);
  plan.covers_all = true;
  for (size_t b = 0; b < fixed.size(); ++b) plan.covers_all = plan.covers_all && uses[b] > 0 && !fixed[b];

  // Partial sums are ordered block by block, so that the second pass reads them consecutively.
  std::vector<int32_t> next_partial(fixed.size(), 0);
  for (size_t b = 0; b < fixed.size(); ++b)
    if (uses[b] > 1 && !fixed[b]) {
      next_partial[b] = int32_t(plan.shared_blocks.size());
      plan.shared_blocks.insert(plan.shared_blocks.end(), size_t(uses[b]), int32_t(b));
    }
  std::vector<int32_t> local(fixed.size(), 0);
  std::vector<std::vector<uint32_t>> entries(kLanes);
  plan.word_first.push_back(0);
  std::vector<int32_t> degree(fixed.size(), 0);
  for (size_t g = 0; g < groups.size(); ++g) {
    Grower::Group& group = groups[g];
    plan.groups.insert(plan.groups.end(), {int32_t(plan.block.size()), int32_t(group.instances.size())});
    for (const int32_t b : group.blocks) degree[size_t(b)] = 0;
    for (const int32_t i : group.instances)
      for (int s = 0; s < slots; ++s) ++degree[size_t(blocks[size_t(s * n + i)])];
    std::sort(group.blocks.begin(), group.blocks.end(), [&](int32_t a, int32_t b) {
      return degree[size_t(a)] != degree[size_t(b)] ? degree[size_t(a)] > degree[size_t(b)] : a < b;
    });
    for (size_t k = 0; k < group.blocks.size(); ++k) {
      const int32_t b = group.blocks[k];
      local[size_t(b)] = int32_t(k);
      plan.block.push_back(b);
      plan.write.push_back(fixed[size_t(b)]       ? AssemblyPlan::kNone
                           : uses[size_t(b)] == 1 ? b
                                                  : ~(next_partial[size_t(b)]++));
      entries[k].clear();
    }
    for (size_t i = 0; i < group.instances.size(); ++i) {
      const size_t place = g * kLanes + i;
      plan.order[place] = group.instances[i];
      for (int s = 0; s < slots; ++s) {
        const int32_t b = blocks[size_t(s * n + group.instances[i])];
        const uint32_t own = uint32_t(local[size_t(b)]);
        plan.ids[size_t(s / 2 * places) + place] |= own << (16 * (s % 2));
        entries[own].push_back(uint32_t(rank[size_t(s)] * kLanes + int(i)) |
                               (sign[size_t(s)] < 0 ? AssemblyPlan::kNegative : 0));
      }
    }
    const uint32_t none = uint32_t(plan.stored * kLanes);
    for (size_t k = 0; k < group.blocks.size(); ++k) {
      for (size_t e = 0; e < entries[k].size(); e += 2)
        plan.words.push_back(entries[k][e] | (e + 1 < entries[k].size() ? entries[k][e + 1] : none) << 16);
      plan.word_first.push_back(int32_t(plan.words.size()));
    }
  }
  plan.groups.insert(plan.groups.end(), {int32_t(plan.block.size()), 0});
  return plan;
}

}  // namespace lockstep::solve
