// The structure of a sparse Cholesky factorisation by blocks: order, supernodes, fronts along the elimination tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::solve {

/// Lower triangle by blocks. Block entry e is at block row `rows[e]` >= block column `columns[e]`, each
/// pair at most once, every diagonal one there; its numbers, column-major, follow those of entry e - 1.
struct BlockPattern {
  std::vector<int64_t> first;          // first unknown of each block; the last element counts all
  std::vector<int32_t> rows, columns;  // of the entries
  int64_t blocks() const { return int64_t(first.size()) - 1; }
  int64_t unknowns() const { return first.back(); }
  int64_t width(int64_t block) const { return first[size_t(block + 1)] - first[size_t(block)]; }
  bool operator==(const BlockPattern&) const = default;
  /// First number of each entry; the last element counts all.
  std::vector<int64_t> offsets() const;
};

/// One supernode: pivot blocks that are next to each other in the order and share their rows.
struct Front {
  int64_t first = 0, last = 0;   // pivot blocks [first, last)
  std::vector<int32_t> rows;     // blocks below the pivots, ascending
  int64_t pivots = 0, size = 0;  // unknowns: of the pivots, and with the rows
  int64_t parent = -1;
  std::vector<int64_t> in_parent;  // where each row block begins in the parent's front
  std::vector<int64_t> children;   // ascending
  int64_t panel = 0;               // first number of its part of the factor
  double flops = 0, subtree = 0;
  int64_t subtree_first = 0;  // first front of its subtree
};

/// A block of the matrix in its front.
struct PlacedBlock {
  int64_t values, row, column;  // offset of its numbers; place in the front
  int32_t height, width;        // of the stored block
  bool transposed;
};

/// Lists of blocks, one after the other.
struct BlockLists {
  std::vector<int64_t> first{0};
  std::vector<int32_t> entries;
  size_t size() const { return first.size() - 1; }
  std::span<const int32_t> operator[](size_t k) const {
    return std::span(entries).subspan(size_t(first[k]), size_t(first[k + 1] - first[k]));
  }
};

/// The part of a factorisation that the pattern alone decides.
struct FrontTree {
  /// `groups`, by block: those of a lower group are eliminated first; empty: the cheapest of several orders.
  explicit FrontTree(const BlockPattern& pattern, std::span<const int32_t> groups = {});

  BlockPattern pattern;
  std::vector<int32_t> old_of;  // block of the pattern by place in the order
  std::vector<int64_t> begins;  // first unknown by place in the order; the last element counts all
  std::vector<Front> fronts;    // children come before their parents
  std::vector<std::vector<PlacedBlock>> placed;
  std::vector<std::vector<int64_t>> diagonal;  // for each front, unknown of the pattern by pivot
  int64_t panels = 0;                          // numbers in the pivot columns of all fronts

  int64_t width(int64_t place) const { return begins[size_t(place + 1)] - begins[size_t(place)]; }

 private:
  void amalgamate(const BlockLists& below);
  void connect();
  void place();
};

}  // namespace lockstep::solve
