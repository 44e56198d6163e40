// The tree that sums over parts follow: node (level, number) is the sum of the parts [number · 2^level, …) of its level, its
// two children added, or its only child. It depends on the number of parts alone.
#pragma once

#include <compare>
#include <map>
#include <vector>

#include "lockstep/parallel.hpp"

namespace lockstep::parallel {

struct Node {
  int level = 0;
  int64_t number = 0;
  auto operator<=>(const Node&) const = default;

  Node left() const { return {level - 1, 2 * number}; }
  Node right() const { return {level - 1, 2 * number + 1}; }
  int64_t begin() const { return number << level; }
  /// Without the bound of the number of parts.
  int64_t end() const { return (number + 1) << level; }
};

Node root_of(int64_t parts);
/// The fewest nodes whose parts are those of the range, in order.
std::vector<Node> frontier(int64_t parts, const Range& range);

/// The node's sum of those that are there: found(node) gives a value or null, add(left, right) adds the right to the left.
template <class Value, class Found, class Add>
Value sum_of(int64_t parts, const Node& node, const Found& found, const Add& add) {
  if (auto value = found(node)) return std::move(*value);
  Value left = sum_of<Value>(parts, node.left(), found, add);
  if (node.right().begin() >= parts) return left;
  add(left, sum_of<Value>(parts, node.right(), found, add));
  return left;
}

}  // namespace lockstep::parallel
