// Tools of every pass: traversal in order, use counts, replacement of values.
#pragma once

#include <functional>
#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

/// Calls `visit(block number, position, id)` for each instruction in order of execution; an instruction comes
/// before those in its blocks. The tree must not change meanwhile.
template <class Visit>
void walk(const ir::Function& f, uint32_t block, Visit&& visit) {
  for (size_t k = 0; k < f.blocks[block].size(); ++k) {
    const ir::Id id = f.blocks[block][k];
    visit(block, k, id);
    for (uint32_t inner : f[id].blocks)
      if (inner != ir::kNoBlock) walk(f, inner, visit);
  }
}

/// How often each value is an operand of an instruction in a block.
std::vector<uint32_t> use_counts(const ir::Function& f);

/// Replacements of values by others, followed to the end of a chain.
class Replacement {
 public:
  explicit Replacement(size_t instructions) : to_(instructions, ir::kNone) {}
  void set(ir::Id from, ir::Id to) {
    if (from >= to_.size()) to_.resize(from + 1, ir::kNone);
    to_[from] = to;
    any_ = true;
  }
  bool any() const { return any_; }
  ir::Id operator[](ir::Id id) const {
    while (id < to_.size() && to_[id] != ir::kNone) id = to_[id];
    return id;
  }
  void apply(ir::Instruction& i) const {
    for (ir::Id& a : i.args)
      if (a != ir::kNone) a = (*this)[a];
  }
  /// Rewrites the operands of all instructions in blocks.
  void apply(ir::Function& f) const;

 private:
  std::vector<ir::Id> to_;
  bool any_ = false;
};

/// Drops instructions that are in no block and blocks that no instruction has, and numbers both in the
/// order of the text. Equal functions become identical.
void compact(ir::Function& f);

}  // namespace lockstep::compile
