#include "compile/native/groups_plan.hpp"

#include <bit>

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::Op;

namespace {
constexpr int kGroupLevel = -1, kUnplaced = -2;
}

GroupsPlan::GroupsPlan(const ir::Function& function, const ir::Divergence& group,
                       const std::unordered_set<Id>& parts)
    : f_(function), group_(group), region_(function.instructions.size(), kUnplaced) {
  place_block(0, parts);
  std::vector<int64_t> sizes(size_t(regions_), 0);
  for (Id id = 0; id < region_.size(); ++id)
    if (region_[id] >= 0) ++sizes[size_t(region_[id])];
  for (Id id : f_.blocks[0])
    if (region_[id] >= 0 && (largest_ < 0 || sizes[size_t(region_[id])] > sizes[size_t(largest_)]))
      largest_ = region_[id];
  for (const ir::Block& block : f_.blocks)
    for (Id id : block) find_crossings(id);
}

bool GroupsPlan::at_group_level(Id id) const { return region_[id] == kGroupLevel; }

bool GroupsPlan::array_crosses(uint64_t number) const {
  return array_regions_.contains(number) && array_regions_.at(number) == kGroupLevel;
}

bool GroupsPlan::hoisted(Id id) const {
  const Instruction& i = f_[id];
  if (at_group_level(id)) return i.op == Op::group_reduce || i.op == Op::loop_index;
  if (!top_.contains(id) || !ir::is_pure(i.op) || !group_.uniform(id)) return false;
  const auto [entry, first] = hoisted_.emplace(id, false);
  if (!first) return entry->second;
  bool all = true;
  for (int k = 0; k < i.arg_count(); ++k) all &= hoisted(i.args[k]);
  hoisted_[id] = all;
  return all;
}

bool GroupsPlan::lanes_return() const {
  for (const ir::Block& block : f_.blocks)
    for (Id id : block)
      if (f_[id].op == Op::return_ && !at_group_level(id)) return true;
  return false;
}

bool GroupsPlan::recomputable(Id id, const std::function<bool(Id)>& given) const {
  int budget = 12;
  return within_budget(id, given, budget);
}

/// A division is expensive unless it is by a power of two.
bool GroupsPlan::within_budget(Id id, const std::function<bool(Id)>& given, int& budget) const {
  if (given(id)) return true;
  const Instruction& i = f_[id];
  if (!ir::is_pure(i.op) || is_float(i.type) || i.op == Op::extract || --budget < 0) return false;
  const bool divides = i.op == Op::idiv || i.op == Op::irem;
  if (divides && (f_[i.args[1]].op != Op::constant || !std::has_single_bit(f_[i.args[1]].imm))) budget -= 4;
  for (int k = 0; k < i.arg_count(); ++k)
    if (!within_budget(i.args[k], given, budget)) return false;
  return true;
}

bool GroupsPlan::has_barrier(uint32_t block) const {
  if (block == ir::kNoBlock) return false;
  for (Id id : f_.blocks[block]) {
    const Instruction& i = f_[id];
    if (i.op == Op::barrier || i.op == Op::group_reduce || has_barrier(i.blocks[0]) ||
        has_barrier(i.blocks[1]))
      return true;
  }
  return false;
}

/// A jump out of `block` to a structure of the group's level.
bool GroupsPlan::jumps_out(uint32_t block, bool in_loop) const {
  if (block == ir::kNoBlock) return false;
  for (Id id : f_.blocks[block]) {
    const Instruction& i = f_[id];
    if (i.op == Op::return_ || (!in_loop && (i.op == Op::break_ || i.op == Op::continue_))) return true;
    const bool inner = in_loop || i.op == Op::for_ || i.op == Op::loop;
    if (jumps_out(i.blocks[0], inner) || jumps_out(i.blocks[1], inner)) return true;
  }
  return false;
}

bool GroupsPlan::runs_at_group_level(const Instruction& i) const {
  switch (i.op) {
    case Op::barrier:
    case Op::group_reduce: return true;
    case Op::break_:
    case Op::continue_: return true;  // seen only where the parent is of the group's level
    case Op::return_: return true;
    case Op::if_:
      return has_barrier(i.blocks[0]) || has_barrier(i.blocks[1]) ||
             (group_.uniform(i.args[0]) && (jumps_out(i.blocks[0], false) || jumps_out(i.blocks[1], false)));
    case Op::for_:
    case Op::loop: return has_barrier(i.blocks[0]);
    default: return false;
  }
}

void GroupsPlan::place_block(uint32_t number, const std::unordered_set<Id>& parts) {
  bool open = false;
  for (Id id : f_.blocks[number]) {
    const Instruction& i = f_[id];
    if (i.op == Op::loop_index) {
      region_[id] = kGroupLevel;
      continue;
    }
    if (runs_at_group_level(i)) {
      region_[id] = kGroupLevel;
      open = false;
      for (uint32_t b : i.blocks)
        if (b != ir::kNoBlock) place_block(b, parts);
      continue;
    }
    // Parts of a loop run one after the other over all vectors, so that each finds the registers free.
    if (!open || parts.contains(id)) ++regions_;
    open = true;
    top_.insert(id);
    place_in_region(id, regions_ - 1);
  }
}

void GroupsPlan::place_in_region(Id id, int region) {
  region_[id] = region;
  for (uint32_t b : f_[id].blocks)
    if (b != ir::kNoBlock)
      for (Id inner : f_.blocks[b]) place_in_region(inner, region);
}

void GroupsPlan::find_crossings(Id id) {
  const Instruction& i = f_[id];
  // The operand of a reduction is taken by the region that ends there.
  for (int k = 0; k < i.arg_count(); ++k)
    if (region_[i.args[k]] != region_[id])
      (region_[id] == kGroupLevel && i.op != Op::group_reduce ? deciding_ : crossing_).insert(i.args[k]);
  if (i.op == Op::variable) written_.emplace(region_[id], id);
  if (i.op == Op::set) written_.emplace(region_[id], i.args[0]);
  if (i.op == Op::local_load || i.op == Op::local_store) {
    const auto [entry, first] = array_regions_.emplace(i.imm, region_[id]);
    if (!first && entry->second != region_[id]) entry->second = kGroupLevel;
  }
}

}  // namespace lockstep::compile::simd
