// Prefetches for the next group of a groups kernel, at addresses that depend on memory: fetched while the
// present group computes. A processor sees such addresses too late, since a group begins with them and then
// computes.
#pragma once

#include <vector>

#include "compile/llvm/lanes/lane_code.hpp"

namespace lockstep::compile::simd {

/// The statements of a kernel that lead to accesses of buffers through indices out of other, read-only
/// buffers: pure ones, loads and conditions. What depends on variables, shared arrays, loops or jumps is left
/// out.
class PrefetchPlan {
 public:
  PrefetchPlan(const ir::Function& function, const Divergence& divergence,
               const InterleavedTable& interleaved);
  bool empty() const { return accesses_ == 0; }
  /// Needed for an index or a condition; an access to be fetched.
  bool computes(ir::Id id) const { return computes_[id]; }
  bool fetches(ir::Id id) const { return fetches_[id]; }

 private:
  void visit(uint32_t block, std::vector<ir::Id>& around);
  bool computable(ir::Id id);
  bool from_memory(ir::Id id) const;
  bool jumps(uint32_t block) const;
  void need(ir::Id id);

  const ir::Function& f_;
  const Divergence& divergence_;
  const InterleavedTable& interleaved_;
  std::vector<bool> computes_, fetches_;
  std::vector<int8_t> computable_;  // -1: not known yet
  int accesses_ = 0;
  bool stopped_ = false;
};

/// Those statements for one vector of lanes, with prefetches for the accesses.
class PrefetchCode : public LaneCode {
 public:
  PrefetchCode(CodeUnit& unit, const Divergence& divergence, int width, const PrefetchPlan& plan)
      : LaneCode(unit, divergence, nullptr, width), plan_(plan) {}

 protected:
  bool statement(ir::Id id, llvm::BasicBlock* end) override;

 private:
  void fetch(ir::Id id);
  const PrefetchPlan& plan_;
};

}  // namespace lockstep::compile::simd
