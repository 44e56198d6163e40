// Accesses of neighbouring elements at one place: components of a vector in memory, which one access per lane
// serves instead of one gather or scatter per component.
#pragma once

#include <unordered_map>
#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::compile::simd {

/// Loads, or stores, of one array whose indices are a common value plus constants, in one straight run of
/// statements that nothing interrupts. All loads may be done at the place of the first, all stores at that of
/// the last.
struct Interleaved {
  struct Member {
    ir::Id access;
    int64_t offset;  // from the common value
  };
  static constexpr int64_t kMost = 4;   // elements from the first offset to the last
  std::vector<Member> members;          // in the order of the run
  int64_t first_offset = 0, width = 1;  // elements [first_offset, first_offset + width)
};

class InterleavedTable {
 public:
  explicit InterleavedTable(const ir::Function& function);
  /// The set that the access belongs to, or null if it is not part of a set.
  const Interleaved* find(ir::Id access) const {
    const auto found = set_of_.find(access);
    return found == set_of_.end() ? nullptr : &sets_[found->second];
  }

 private:
  std::vector<Interleaved> sets_;
  std::unordered_map<ir::Id, size_t> set_of_;
};

}  // namespace lockstep::compile::simd
