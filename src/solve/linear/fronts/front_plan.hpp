// Layout and schedule of a factorisation by fronts on a device: what the kernels read as tables of i32.
#pragma once

#include <cstdint>
#include <vector>

#include "solve/linear/cholesky/front_tree.hpp"

namespace lockstep::solve {

/// Pivot columns that are eliminated at once; sides of the tiles of products; rows and columns of the tiles that gather
/// children; rows that a group of the panel kernel has below its diagonal block.
inline constexpr int kPivotBlock = 32, kFrontTile = 64, kGatherRows = 64, kGatherColumns = 16,
                     kPanelRows = 96;
/// Rows, and columns, of a group of the substitutions.
inline constexpr int kForwardRows = 128, kBackwardColumns = 8;

/// Columns of FrontPlan::fronts.
enum FrontWord {
  kPanel,         // first number of the pivot columns (size, pivots), column-major
  kSize,          // rows of the front
  kPivots,        // of them eliminated here
  kUpdate,        // first number of the Schur complement (rest, rest), column-major, lower triangle
  kRest,          // rows below the pivots
  kFirstStep,     // number of its first block of pivots
  kFirstUnknown,  // place of its first pivot in the order
  kFirstChild,    // its children in FrontPlan::children
  kLastChild,
  kRows,  // first of its rows below the pivots in FrontPlan::rows; where its part of the sums begins
  kFrontWords
};
/// Columns of FrontPlan::children.
enum ChildWord {
  kChildUpdate,  // words of the child's front
  kChildRest,
  kChildRows,
  kLow,  // the child's rows are in [low, high) of the parent's front
  kHigh,
  kPlaces,  // child's row, or -1, by the parent's row less low: first in FrontPlan::places
  kChildWords
};

/// Items of FrontPlan::work.
struct WorkRange {
  int64_t first = 0, count = 0;
};

struct FrontPlan {
  explicit FrontPlan(const FrontTree& tree);

  /// Fronts whose children are in earlier levels. Items of work: (front, a, b, c).
  struct Level {
    WorkRange fronts;               // (front)
    WorkRange gather;               // (front, first row, first column): children into pivot columns
    std::vector<WorkRange> panels;  // by block of pivots: (front, block, first row)
    std::vector<WorkRange> trails;  // (front, block, first row, first column): what it changes to its right
    WorkRange updates;              // (front, first row, first column): Schur complements
    WorkRange rows, columns;        // (front, first row), (front, first column): of the substitutions
  };
  std::vector<Level> levels;
  std::vector<int32_t> work;      // (items, 4)
  std::vector<int32_t> fronts;    // (fronts, kFrontWords)
  std::vector<int32_t> children;  // (children, kChildWords)
  std::vector<int32_t> places;
  std::vector<int32_t> rows;         // places in the order
  std::vector<int32_t> value_at;     // by number of the pattern's values: place in the panels
  std::vector<int32_t> diagonal_at;  // by unknown of the pattern: place in the panels
  std::vector<int32_t> order;        // by unknown of the pattern: place in the order
  int64_t unknowns = 0, panels = 0, updates = 0, steps = 0;

  /// Bytes of the tables and of numbers of `real_bytes` each.
  double bytes(int real_bytes) const;

 private:
  void place_updates(const FrontTree& tree, const std::vector<int32_t>& level_of);
  void list_children(const FrontTree& tree);
  void list_values(const FrontTree& tree);
  void schedule(const std::vector<std::vector<int32_t>>& by_level);
  WorkRange open() const { return {int64_t(work.size() / 4), 0}; }
  void add(WorkRange& range, int64_t front, int64_t a = 0, int64_t b = 0, int64_t c = 0);
};

}  // namespace lockstep::solve
