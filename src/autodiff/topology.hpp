// Topologies of expressions whose leaves are parts of larger things.
#pragma once

#include <functional>

#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {

/// The place of a leaf: leaves of one `block` belong together, and `component` numbers them within it.
struct LeafPlace {
  int64_t block = 0;
  int64_t component = 0;
};
/// As topology(), but commutative operands are also distinguished by their leaves' components and blocks
/// keep one role throughout, so the order of traversal does not depend on how blocks are numbered.
Topology topology(std::span<const Value> outputs, const std::function<LeafPlace(uint32_t leaf)>& place);
/// Nodes that the topologies of this thread have visited and marks of nodes that were reset or added: the cost of
/// topology() as a count, for tests.
uint64_t topology_visits();

}  // namespace lockstep::autodiff
