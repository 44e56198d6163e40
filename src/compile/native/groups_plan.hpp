// Which statements of a groups kernel run once per group, with uniform control, and which in regions: each longest run of
// statements without barriers is a region, a loop over the group's vectors of lanes.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/divergence.hpp"

namespace lockstep::compile::simd {

class GroupsPlan {
 public:
  /// `group`: divergence over all lanes of a group. `parts`: loops that begin a region of their own.
  GroupsPlan(const ir::Function& function, const ir::Divergence& group,
             const std::unordered_set<ir::Id>& parts = {});

  bool at_group_level(ir::Id id) const;
  int region(ir::Id id) const { return region_[id]; }
  /// The value, variable or local array (by number) is used by another region than the one that defines it.
  bool crosses(ir::Id id) const { return crossing_.contains(id); }
  /// A condition or bound at the group's level.
  bool decides(ir::Id id) const { return deciding_.contains(id); }
  bool writes(int region, ir::Id variable) const { return written_.contains({region, variable}); }
  bool array_crosses(uint64_t number) const;
  int regions() const { return regions_; }
  /// The region with the most instructions of those that run once per group: there is time for prefetching.
  int largest_region() const { return largest_; }
  /// Pure, the same for the whole group, from values of the group's level only.
  bool hoisted(ir::Id id) const;
  /// Some return_ ends lanes of a region while others continue.
  bool lanes_return() const;
  /// Cheap index arithmetic, which each region does again rather than keep. `given`: values of the group's level at hand.
  bool recomputable(ir::Id id, const std::function<bool(ir::Id)>& given) const;

  /// A block of the group's level in its order: hoist(id) for hoisted values; region(ids, reduction), where reduction
  /// ends the region and takes its operand there, or is kNone; statement(id), which returns whether control continues
  /// after it. False if control does not reach the end.
  template <class Hoist, class Region, class Statement>
  bool walk(uint32_t block, Hoist hoist, Region region, Statement statement) const {
    std::vector<ir::Id> open;
    const auto flush = [&](ir::Id reduction) {
      if (!open.empty()) region(open, reduction);
      open.clear();
    };
    for (const ir::Id id : f_.blocks[block]) {
      const ir::Op op = f_[id].op;
      if (op == ir::Op::loop_index) continue;
      if (at_group_level(id)) {
        if (op == ir::Op::group_reduce) open.push_back(id);
        flush(op == ir::Op::group_reduce ? id : ir::kNone);
        if (op != ir::Op::group_reduce && !statement(id)) return false;
        continue;
      }
      if (!open.empty() && this->region(id) != this->region(open[0])) flush(ir::kNone);
      if (hoisted(id))
        hoist(id);
      else
        open.push_back(id);
    }
    flush(ir::kNone);
    return true;
  }

 private:
  bool has_barrier(uint32_t block) const;
  bool jumps_out(uint32_t block, bool in_loop) const;
  bool runs_at_group_level(const ir::Instruction& i) const;
  void place_block(uint32_t number, const std::unordered_set<ir::Id>& parts);
  void place_in_region(ir::Id id, int region);
  void find_crossings(ir::Id id);
  bool within_budget(ir::Id id, const std::function<bool(ir::Id)>& given, int& budget) const;

  const ir::Function& f_;
  const ir::Divergence& group_;
  std::vector<int> region_;
  std::unordered_set<ir::Id> top_, crossing_, deciding_;
  std::set<std::pair<int, ir::Id>> written_;  // regions, and the variables that they give values
  std::unordered_map<uint64_t, int> array_regions_;
  mutable std::unordered_map<ir::Id, bool> hoisted_;
  int regions_ = 0, largest_ = -1;
};

}  // namespace lockstep::compile::simd
