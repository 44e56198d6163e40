// Loop distribution: a loop that carries more vectors than the processor has registers becomes several loops,
// each of which carries some. Only sums and other variables that do not depend on each other are parted, so
// every value is computed by the same operations.
#pragma once

#include <unordered_set>

#include "compile/llvm/code_unit.hpp"

namespace lockstep::compile::simd {

struct Distributed {
  ir::Function function;
  std::unordered_set<ir::Id> parts;  // loops split from another, which precedes them
};
Distributed distribute_loops(const ir::Function& lowered, const VectorTarget& target, int width);

}  // namespace lockstep::compile::simd
