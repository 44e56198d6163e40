// An elimination order by nested dissection: small separators, found on coarser and coarser graphs, come
// last.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::solve {

/// An undirected graph without loops: the neighbours of vertex v are adjacent[first[v]] … adjacent[first[v +
/// 1]
/// - 1], ascending; every edge is listed at both ends. `weight`: of vertices, positive.
struct OrderingGraph {
  std::vector<int32_t> first, adjacent, weight;
  int32_t vertices() const { return int32_t(weight.size()); }
};

/// Vertices by their place in the order. Parts of kLeafVertices or fewer, and those that have no small
/// separator, are ordered by approximate minimum degree. A function of the graph alone, for any number of
/// threads. After G. Karypis and V. Kumar, SIAM J. Sci. Comput. 20 (1998), and C. Ashcraft and J. Liu, SIAM
/// J. Matrix Anal. Appl. 19 (1998).
std::vector<int32_t> nested_dissection(const OrderingGraph& graph);
/// The same by approximate minimum degree alone.
std::vector<int32_t> minimum_degree(const OrderingGraph& graph);

inline constexpr int32_t kLeafVertices = 120;

/// Which side of a separator a vertex is on.
enum class Side : uint8_t { left, right, separator };
/// A vertex separator: no edge joins left and right. Both sides have at most three fifths of the weight where
/// the graph allows it.
std::vector<Side> find_separator(const OrderingGraph& graph);

}  // namespace lockstep::solve
