#include "compile/llvm/analysis/prefetch.hpp"

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::Op;
using llvm::Value;

PrefetchPlan::PrefetchPlan(const ir::Function& function, const Divergence& divergence,
                           const InterleavedTable& interleaved)
    : f_(function),
      divergence_(divergence),
      interleaved_(interleaved),
      computes_(function.instructions.size(), false),
      fetches_(function.instructions.size(), false),
      computable_(function.instructions.size(), -1) {
  std::vector<Id> around;
  visit(0, around);
}

void PrefetchPlan::visit(uint32_t block, std::vector<Id>& around) {
  for (Id id : f_.blocks[block]) {
    if (stopped_) return;
    const Instruction& i = f_[id];
    if (i.op == Op::if_) {
      if (jumps(i.blocks[0]) || jumps(i.blocks[1])) {
        stopped_ = true;
        return;
      }
      if (!computable(i.args[0])) continue;
      around.push_back(id);
      for (uint32_t inner : i.blocks)
        if (inner != ir::kNoBlock) visit(inner, around);
      around.pop_back();
      continue;
    }
    stopped_ = i.op == Op::return_ || jumps(i.blocks[0]);
    if (i.op != Op::load && i.op != Op::store) continue;
    const Interleaved* set = interleaved_.find(id);
    if (set && set->members[0].access != id) continue;
    if (divergence_.uniform(i.args[0]) || !computable(i.args[0]) || !from_memory(i.args[0])) continue;
    ++accesses_;
    need(i.args[0]);
    fetches_[id] = true;
    for (Id structure : around) need(structure);
  }
}

/// From the group's number, the lane and read-only buffers alone.
bool PrefetchPlan::computable(Id id) {
  int8_t& known = computable_[id];
  if (known >= 0) return known != 0;
  const Instruction& i = f_[id];
  bool all =
      i.lanes == 1 && (i.op == Op::load ? f_.buffers[i.imm].access == ir::Access::read : ir::is_pure(i.op));
  for (int k = 0; k < i.arg_count() && all; ++k) all = computable(i.args[k]);
  known = all;
  return all;
}

bool PrefetchPlan::from_memory(Id id) const {
  const Instruction& i = f_[id];
  if (i.op == Op::load) return true;
  for (int k = 0; k < i.arg_count(); ++k)
    if (from_memory(i.args[k])) return true;
  return false;
}

bool PrefetchPlan::jumps(uint32_t block) const {
  if (block == ir::kNoBlock) return false;
  for (Id id : f_.blocks[block]) {
    const Instruction& i = f_[id];
    if (i.op == Op::return_ || i.op == Op::break_ || i.op == Op::continue_ || jumps(i.blocks[0]) ||
        jumps(i.blocks[1]))
      return true;
  }
  return false;
}

void PrefetchPlan::need(Id id) {
  if (computes_[id]) return;
  computes_[id] = true;
  for (int k = 0; k < f_[id].arg_count(); ++k) need(f_[id].args[k]);
}

bool PrefetchCode::statement(Id id, llvm::BasicBlock* end) {
  if (plan_.fetches(id) && !plan_.computes(id)) fetch(id);
  return !plan_.computes(id) || LaneCode::statement(id, end);
}

/// A prefetch for lanes in a row, else one per lane; lanes that are off repeat one that is on.
void PrefetchCode::fetch(Id id) {
  const Instruction& i = f_[id];
  const MemoryPlace place = u_.buffer(i.imm);
  const auto prefetch = [&](Value* index) {
    Value* pointer = address(place, index);
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {pointer->getType()},
                       {pointer, b_.getInt32(i.op == Op::store), b_.getInt32(3), b_.getInt32(1)});
  };
  if (!divergence_[i.args[0]].is_varying()) return prefetch(scalar(i.args[0]));
  Value* index = vector(i.args[0]);
  if (mask_) index = b_.CreateSelect(mask_, index, splat(b_.CreateExtractElement(index, first_active())));
  for_lanes(index, prefetch);
}

}  // namespace lockstep::compile::simd
