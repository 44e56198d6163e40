#include "solve/linear/cholesky/front_tree.hpp"

#include <tbb/parallel_invoke.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "solve/linear/cholesky/elimination_order.hpp"
#include "solve/linear/cholesky/nested_dissection.hpp"

namespace lockstep::solve {
namespace {

constexpr int32_t kFewestDissected = 1000;  // blocks; minimum degree alone orders fewer
constexpr double kDissectionFlops = 2000;   // a block: what dissecting costs; cheaper factors gain less
constexpr int32_t kFewestAtOnce = 20'000;   // blocks; both orders are worked out side by side

}  // namespace

std::vector<int64_t> BlockPattern::offsets() const {
  std::vector<int64_t> out{0};
  for (size_t e = 0; e < rows.size(); ++e) out.push_back(out.back() + width(rows[e]) * width(columns[e]));
  return out;
}

namespace {

/// By row of the order the columns left of it, or by column the rows below it; from the pattern.
BlockLists triangle(const BlockPattern& pattern, const std::vector<int32_t>& place_of, bool by_row) {
  BlockLists out;
  out.first.assign(size_t(pattern.blocks()) + 1, 0);
  const auto each = [&](auto visit) {
    for (size_t e = 0; e < pattern.rows.size(); ++e) {
      const int32_t a = place_of[size_t(pattern.rows[e])], b = place_of[size_t(pattern.columns[e])];
      if (a != b) by_row ? visit(std::max(a, b), std::min(a, b)) : visit(std::min(a, b), std::max(a, b));
    }
  };
  each([&](int32_t list, int32_t) { ++out.first[size_t(list) + 1]; });
  std::partial_sum(out.first.begin(), out.first.end(), out.first.begin());
  out.entries.resize(size_t(out.first.back()));
  std::vector<int64_t> next(out.first.begin(), out.first.end() - 1);
  each([&](int32_t list, int32_t entry) { out.entries[size_t(next[size_t(list)]++)] = entry; });
  return out;
}
std::vector<int32_t> inverse(const std::vector<int32_t>& old_of) {
  std::vector<int32_t> out(old_of.size());
  for (size_t k = 0; k < old_of.size(); ++k) out[size_t(old_of[k])] = int32_t(k);
  return out;
}

/// Parents in the elimination tree, by Liu's algorithm with path compression; -1 for roots.
std::vector<int32_t> elimination_tree(const BlockLists& left) {
  const size_t n = left.size();
  std::vector<int32_t> parent(n, -1), ancestor(n, -1);
  for (size_t i = 0; i < n; ++i)
    for (int32_t j : left[i])
      while (j != -1 && j != int32_t(i)) {
        const int32_t next = ancestor[size_t(j)];
        ancestor[size_t(j)] = int32_t(i);
        if (next == -1) parent[size_t(j)] = int32_t(i);
        j = next;
      }
  return parent;
}

/// Nodes of the forest, children before parents and subtrees in one piece.
std::vector<int32_t> postorder(const std::vector<int32_t>& parent) {
  const size_t n = parent.size();
  std::vector<int32_t> head(n, -1), next(n, -1), out, stack;
  for (size_t k = n; k-- > 0;)
    if (parent[k] >= 0) next[k] = head[size_t(parent[k])], head[size_t(parent[k])] = int32_t(k);
  out.reserve(n);
  for (size_t root = 0; root < n; ++root) {
    if (parent[root] >= 0) continue;
    stack.push_back(int32_t(root));
    while (!stack.empty()) {
      const int32_t node = stack.back();
      if (head[size_t(node)] >= 0) {
        stack.push_back(head[size_t(node)]);
        head[size_t(node)] = next[size_t(stack.back())];
      } else {
        out.push_back(node);
        stack.pop_back();
      }
    }
  }
  return out;
}

/// The graph of the blocks.
OrderingGraph ordering_graph(const BlockPattern& pattern) {
  OrderingGraph graph;
  const size_t n = size_t(pattern.blocks());
  graph.first.assign(n + 1, 0);
  for (size_t e = 0; e < pattern.rows.size(); ++e)
    if (pattern.rows[e] != pattern.columns[e])
      ++graph.first[size_t(pattern.rows[e]) + 1], ++graph.first[size_t(pattern.columns[e]) + 1];
  std::partial_sum(graph.first.begin(), graph.first.end(), graph.first.begin());
  graph.adjacent.resize(size_t(graph.first.back()));
  std::vector<int32_t> next(graph.first.begin(), graph.first.end() - 1);
  for (size_t e = 0; e < pattern.rows.size(); ++e) {
    const int32_t a = pattern.rows[e], b = pattern.columns[e];
    if (a != b) graph.adjacent[size_t(next[size_t(a)]++)] = b, graph.adjacent[size_t(next[size_t(b)]++)] = a;
  }
  for (size_t v = 0; v < n; ++v) {
    std::sort(graph.adjacent.begin() + graph.first[v], graph.adjacent.begin() + graph.first[v + 1]);
    graph.weight.push_back(int32_t(pattern.width(int64_t(v))));
  }
  return graph;
}

/// Block rows of each column of the factor, below its diagonal.
BlockLists structures(const BlockLists& lower) {
  const size_t n = lower.size();
  BlockLists below;
  std::vector<int32_t> seen(n, -1), child(n, -1), next(n, -1);  // children of a column as a list
  for (size_t j = 0; j < n; ++j) {
    const size_t begin = below.entries.size();
    const auto add = [&](int32_t i) {
      if (i != int32_t(j) && seen[size_t(i)] != int32_t(j))
        seen[size_t(i)] = int32_t(j), below.entries.push_back(i);
    };
    for (const int32_t i : lower[j]) add(i);
    for (int32_t c = child[j]; c >= 0; c = next[size_t(c)])
      for (int64_t k = below.first[size_t(c)]; k < below.first[size_t(c) + 1]; ++k)
        add(below.entries[size_t(k)]);
    std::sort(below.entries.begin() + int64_t(begin), below.entries.end());
    below.first.push_back(int64_t(below.entries.size()));
    if (begin == below.entries.size()) continue;
    int32_t& head = child[size_t(below.entries[begin])];
    next[j] = head, head = int32_t(j);
  }
  return below;
}

/// An order in postorder of its elimination tree, and what it costs.
struct Ordered {
  std::vector<int32_t> old_of;  // block of the pattern by place
  BlockLists below;             // block rows of each column of the factor
  double flops = 0;
};
Ordered evaluated(const BlockPattern& pattern, const std::vector<int32_t>& old_of) {
  Ordered out;
  for (const int32_t k : postorder(elimination_tree(triangle(pattern, inverse(old_of), true))))
    out.old_of.push_back(old_of[size_t(k)]);
  out.below = structures(triangle(pattern, inverse(out.old_of), false));
  for (size_t k = 0; k < out.below.size(); ++k) {
    double height = 0;
    for (const int32_t row : out.below[k]) height += double(pattern.width(out.old_of[size_t(row)]));
    for (int64_t i = pattern.width(out.old_of[k]); i > 0; --i)
      out.flops += (height + double(i)) * (height + double(i));
  }
  return out;
}

/// The cheaper one of two orders: minimum degree suits long thin problems, dissection surfaces and solids.
Ordered best_order(const BlockPattern& pattern) {
  const OrderingGraph graph = ordering_graph(pattern);
  Ordered best;
  if (graph.vertices() < kFewestAtOnce) {
    best = evaluated(pattern, minimum_degree(graph));
    if (graph.vertices() < kFewestDissected || best.flops < kDissectionFlops * double(graph.vertices()))
      return best;
    Ordered other = evaluated(pattern, nested_dissection(graph));
    return other.flops < best.flops ? std::move(other) : std::move(best);
  }
  Ordered other;
  tbb::parallel_invoke([&] { best = evaluated(pattern, minimum_degree(graph)); },
                       [&] { other = evaluated(pattern, nested_dissection(graph)); });
  return other.flops < best.flops ? std::move(other) : std::move(best);
}

/// Blocks of a lower group first, within a group by minimum degree.
std::vector<int32_t> order_of_groups(const BlockPattern& pattern, std::span<const int32_t> groups) {
  Elements pairs;
  std::vector<int32_t> widths, order;
  for (int64_t b = 0; b < pattern.blocks(); ++b) widths.push_back(int32_t(pattern.width(b)));
  for (size_t e = 0; e < pattern.rows.size(); ++e)
    if (pattern.rows[e] != pattern.columns[e]) pairs.add(std::array{pattern.rows[e], pattern.columns[e]});
  for (const EliminationFront& front : elimination_fronts(widths, groups, pairs))
    order.insert(order.end(), front.pivots.begin(), front.pivots.end());
  return order;
}

}  // namespace

FrontTree::FrontTree(const BlockPattern& of, std::span<const int32_t> groups) : pattern(of) {
  Ordered order = groups.empty() ? best_order(pattern) : evaluated(pattern, order_of_groups(pattern, groups));
  old_of = std::move(order.old_of);
  begins = {0};
  for (const int32_t block : old_of) begins.push_back(begins.back() + pattern.width(block));
  amalgamate(order.below);
  connect();
  place();
}

/// Columns join the front before them where it is their child and few zeros come in.
void FrontTree::amalgamate(const BlockLists& below) {
  const int64_t n = int64_t(below.size());
  double kept = 0;  // numbers of the running front that are not known to be zero
  for (int64_t j = 0; j < n; ++j) {
    const double width_j = double(width(j));
    double rows_j = 0;
    for (const int32_t i : below[size_t(j)]) rows_j += double(width(i));
    const double own = width_j * (width_j + 1) / 2 + width_j * rows_j;
    if (!fronts.empty() && !below[size_t(j - 1)].empty() && below[size_t(j - 1)][0] == j) {
      Front& open = fronts.back();
      const double pivots = double(begins[size_t(j + 1)] - begins[size_t(open.first)]);
      const double filled = pivots * (pivots + 1) / 2 + pivots * rows_j;
      const double zeros = (filled - (kept + own)) / filled;
      const double allowed = pivots <= 12 ? 1 : pivots <= 24 ? 0.5 : pivots <= 60 ? 0.2 : 0.08;
      if (zeros <= allowed) {
        open.last = j + 1;
        kept += own;
        continue;
      }
    }
    Front front;
    front.first = j, front.last = j + 1;
    fronts.push_back(std::move(front));
    kept = own;
  }
  for (Front& front : fronts) {
    const std::span<const int32_t> rows = below[size_t(front.last - 1)];
    front.rows.assign(rows.begin(), rows.end());
  }
}

void FrontTree::connect() {
  std::vector<int64_t> front_of(begins.size() - 1);
  int64_t panel = 0;
  for (size_t f = 0; f < fronts.size(); ++f) {
    Front& front = fronts[f];
    for (int64_t k = front.first; k < front.last; ++k) front_of[size_t(k)] = int64_t(f);
    front.pivots = begins[size_t(front.last)] - begins[size_t(front.first)];
    front.size = front.pivots;
    for (const int32_t row : front.rows) front.size += width(row);
    front.panel = panel;
    panel += front.size * front.pivots;
    for (int64_t k = 0; k < front.pivots; ++k) front.flops += double(front.size - k) * double(front.size - k);
    front.subtree = front.flops;
    front.subtree_first = int64_t(f);
  }
  panels = panel;
  for (size_t f = 0; f < fronts.size(); ++f) {
    Front& front = fronts[f];
    if (front.rows.empty()) continue;
    front.parent = front_of[size_t(front.rows[0])];
    Front& parent = fronts[size_t(front.parent)];
    parent.children.push_back(int64_t(f));
    parent.subtree += front.subtree;
    parent.subtree_first = std::min(parent.subtree_first, front.subtree_first);
    int64_t at = parent.pivots;
    size_t next = 0;
    for (const int32_t row : front.rows) {
      if (row < parent.last) {
        front.in_parent.push_back(begins[size_t(row)] - begins[size_t(parent.first)]);
        continue;
      }
      for (; parent.rows[next] != row; ++next) at += width(parent.rows[next]);
      front.in_parent.push_back(at);
    }
  }
}

void FrontTree::place() {
  const std::vector<int32_t> place_of = inverse(old_of);
  std::vector<int64_t> front_of(begins.size() - 1), in_front(begins.size() - 1);
  for (size_t f = 0; f < fronts.size(); ++f)
    for (int64_t k = fronts[f].first; k < fronts[f].last; ++k) front_of[size_t(k)] = int64_t(f);
  placed.resize(fronts.size());
  const std::vector<int64_t> offsets = pattern.offsets();
  for (size_t e = 0; e < pattern.rows.size(); ++e) {
    const int32_t a = place_of[size_t(pattern.rows[e])], b = place_of[size_t(pattern.columns[e])];
    placed[size_t(front_of[size_t(std::min(a, b))])].push_back(
        {offsets[e], std::max(a, b), std::min(a, b), int32_t(pattern.width(pattern.rows[e])),
         int32_t(pattern.width(pattern.columns[e])), a < b});
  }
  diagonal.resize(fronts.size());
  for (size_t f = 0; f < fronts.size(); ++f) {
    const Front& front = fronts[f];
    for (int64_t k = front.first; k < front.last; ++k)
      in_front[size_t(k)] = begins[size_t(k)] - begins[size_t(front.first)];
    int64_t at = front.pivots;
    for (const int32_t row : front.rows) in_front[size_t(row)] = std::exchange(at, at + width(row));
    for (PlacedBlock& block : placed[f])
      block.row = in_front[size_t(block.row)], block.column = in_front[size_t(block.column)];
    for (int64_t k = front.first; k < front.last; ++k)
      for (int64_t i = 0; i < width(k); ++i)
        diagonal[f].push_back(pattern.first[size_t(old_of[size_t(k)])] + i);
  }
}

}  // namespace lockstep::solve
