// Loops in which each lane adds up records: neighbouring elements at places of its own, component by component.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compile/llvm/analysis/interleaved.hpp"
#include "ir/divergence.hpp"

namespace lockstep::compile::simd {

/// A loop over a lane's own range that reads records, does the same to each of their components and changes
/// nothing but one variable a component. A pass of one lane is then one access of a whole record and the
/// operations of the first component on all of them; lanes side by side would have to transpose each record.
struct RecordSum {
  std::vector<ir::Id> variables;              // by component; each holds `initial` when the loop begins
  std::vector<ir::Id> initial;                // constants, by component
  std::unordered_map<ir::Id, int> component;  // of the loop's statements on records
  int count() const { return int(variables.size()); }
  bool on_records(ir::Id id) const { return component.contains(id); }
};

/// Nothing where the loop is no such sum.
std::optional<RecordSum> find_record_sum(const ir::Function& function, const ir::Divergence& divergence,
                                         const InterleavedTable& interleaved, ir::Id loop);

}  // namespace lockstep::compile::simd
