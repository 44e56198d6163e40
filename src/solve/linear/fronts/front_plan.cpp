#include "solve/linear/fronts/front_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

/// Places of Schur complements that are not needed at the same time, first fit.
class Places {
 public:
  int64_t take(int64_t size) {
    if (size == 0) return 0;
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      if (hole->second < size) continue;
      const auto [at, room] = *hole;
      holes_.erase(hole);
      if (room > size) holes_[at + size] = room - size;
      return at;
    }
    end_ += size;
    return end_ - size;
  }
  void give(int64_t at, int64_t size) {
    if (size == 0) return;
    const auto next = holes_.lower_bound(at);
    if (next != holes_.end() && next->first == at + size) {
      size += next->second;
      holes_.erase(next);
    }
    const auto after = holes_.lower_bound(at);
    if (after != holes_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == at) {
        before->second += size;
        return;
      }
    }
    holes_[at] = size;
  }
  int64_t end() const { return end_; }

 private:
  std::map<int64_t, int64_t> holes_;
  int64_t end_ = 0;
};

/// Levels of the fronts. Children come before their parents in the tree's order.
std::vector<int32_t> levels_of(const FrontTree& tree) {
  std::vector<int32_t> level(tree.fronts.size(), 0);
  for (size_t f = 0; f < tree.fronts.size(); ++f)
    if (const int64_t parent = tree.fronts[f].parent; parent >= 0)
      level[size_t(parent)] = std::max(level[size_t(parent)], level[f] + 1);
  return level;
}

}  // namespace

FrontPlan::FrontPlan(const FrontTree& tree) : unknowns(tree.begins.back()), panels(tree.panels) {
  const std::vector<int32_t> level_of = levels_of(tree);
  std::vector<std::vector<int32_t>> by_level;
  for (size_t f = 0; f < level_of.size(); ++f) {
    if (by_level.size() <= size_t(level_of[f])) by_level.resize(size_t(level_of[f]) + 1);
    by_level[size_t(level_of[f])].push_back(int32_t(f));
  }
  fronts.resize(tree.fronts.size() * kFrontWords);
  for (size_t f = 0; f < tree.fronts.size(); ++f) {
    const Front& front = tree.fronts[f];
    int32_t* const words = fronts.data() + f * kFrontWords;
    words[kPanel] = int32_t(front.panel), words[kSize] = int32_t(front.size);
    words[kPivots] = int32_t(front.pivots), words[kRest] = int32_t(front.size - front.pivots);
    words[kFirstStep] = int32_t(steps);
    words[kFirstUnknown] = int32_t(tree.begins[size_t(front.first)]);
    words[kRows] = int32_t(rows.size());
    steps += (front.pivots + kPivotBlock - 1) / kPivotBlock;
    for (const int32_t row : front.rows)
      for (int64_t i = 0; i < tree.width(row); ++i) rows.push_back(int32_t(tree.begins[size_t(row)] + i));
  }
  place_updates(tree, level_of);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (const int64_t most =
          std::max({panels, updates, int64_t(rows.size()), steps * kPivotBlock * kPivotBlock});
      most > kMost)
    throw InputError(fmt::format("a factor with {} numbers in one table", most), "solve device_cholesky",
                     "fewer than 2^31, or an iterative solver");
  list_children(tree);
  list_values(tree);
  schedule(by_level);
}

void FrontPlan::place_updates(const FrontTree& tree, const std::vector<int32_t>& level_of) {
  std::vector<std::vector<size_t>> by_level;
  for (size_t f = 0; f < level_of.size(); ++f) {
    if (by_level.size() <= size_t(level_of[f])) by_level.resize(size_t(level_of[f]) + 1);
    by_level[size_t(level_of[f])].push_back(f);
  }
  const auto size_of = [&](size_t f) {
    const int64_t rest = tree.fronts[f].size - tree.fronts[f].pivots;
    return rest * rest;
  };
  Places memory;
  std::vector<int64_t> at(tree.fronts.size());
  for (const auto& level : by_level) {
    for (const size_t f : level) at[f] = memory.take(size_of(f));
    for (const size_t f : level)
      for (const int64_t child : tree.fronts[f].children)
        memory.give(at[size_t(child)], size_of(size_t(child)));
  }
  updates = memory.end();
  for (size_t f = 0; f < at.size(); ++f) fronts[f * kFrontWords + kUpdate] = int32_t(at[f]);
}

void FrontPlan::list_children(const FrontTree& tree) {
  for (size_t f = 0; f < tree.fronts.size(); ++f) {
    int32_t* const words = fronts.data() + f * kFrontWords;
    words[kFirstChild] = int32_t(children.size() / kChildWords);
    for (const int64_t c : tree.fronts[f].children) {
      const Front& child = tree.fronts[size_t(c)];
      const int32_t* const of = fronts.data() + size_t(c) * kFrontWords;
      const int64_t low = child.in_parent.front(),
                    high = child.in_parent.back() + tree.width(child.rows.back());
      const size_t first = places.size();
      places.resize(first + size_t(high - low), -1);
      int32_t row = 0;
      for (size_t b = 0; b < child.rows.size(); ++b)
        for (int64_t i = 0; i < tree.width(child.rows[b]); ++i)
          places[first + size_t(child.in_parent[b] + i - low)] = row++;
      children.insert(children.end(),
                      {of[kUpdate], of[kRest], of[kRows], int32_t(low), int32_t(high), int32_t(first)});
    }
    words[kLastChild] = int32_t(children.size() / kChildWords);
  }
}

void FrontPlan::list_values(const FrontTree& tree) {
  value_at.resize(size_t(tree.pattern.offsets().back()));
  diagonal_at.resize(size_t(unknowns));
  order.resize(size_t(unknowns));
  for (size_t f = 0; f < tree.fronts.size(); ++f) {
    const Front& front = tree.fronts[f];
    for (const PlacedBlock& block : tree.placed[f])
      for (int64_t j = 0; j < block.width; ++j)
        for (int64_t i = 0; i < block.height; ++i) {
          const int64_t row = block.row + (block.transposed ? j : i),
                        column = block.column + (block.transposed ? i : j);
          value_at[size_t(block.values + j * block.height + i)] =
              int32_t(front.panel + column * front.size + row);
        }
    for (int64_t k = 0; k < front.pivots; ++k) {
      const size_t unknown = size_t(tree.diagonal[f][size_t(k)]);
      diagonal_at[unknown] = int32_t(front.panel + k * front.size + k);
      order[unknown] = int32_t(tree.begins[size_t(front.first)] + k);
    }
  }
}

void FrontPlan::add(WorkRange& range, int64_t front, int64_t a, int64_t b, int64_t c) {
  work.insert(work.end(), {int32_t(front), int32_t(a), int32_t(b), int32_t(c)});
  ++range.count;
}

void FrontPlan::schedule(const std::vector<std::vector<int32_t>>& by_level) {
  for (const std::vector<int32_t>& members : by_level) {
    Level level;
    const auto word = [&](int32_t f, FrontWord w) -> int64_t { return fronts[size_t(f) * kFrontWords + w]; };
    const auto all = [&](WorkRange& range, const auto& list) {
      range = open();
      for (const int32_t f : members) list(range, f, word(f, kSize), word(f, kPivots), word(f, kRest));
    };
    using Range = WorkRange;
    all(level.fronts, [&](Range& range, int32_t f, int64_t, int64_t, int64_t) { add(range, f); });
    all(level.gather, [&](Range& range, int32_t f, int64_t size, int64_t pivots, int64_t) {
      if (word(f, kFirstChild) == word(f, kLastChild)) return;
      for (int64_t column = 0; column < pivots; column += kGatherColumns)
        for (int64_t row = column / kGatherRows * kGatherRows; row < size; row += kGatherRows)
          add(range, f, row, column);
    });
    int64_t blocks = 0;
    for (const int32_t f : members)
      blocks = std::max(blocks, (word(f, kPivots) + kPivotBlock - 1) / kPivotBlock);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t begin = block * kPivotBlock;
      all(level.panels.emplace_back(), [&](Range& range, int32_t f, int64_t size, int64_t pivots, int64_t) {
        if (begin >= pivots) return;
        int64_t row = std::min(begin + kPivotBlock, pivots);
        do add(range, f, block, row);
        while ((row += kPanelRows) < size);
      });
      all(level.trails.emplace_back(), [&](Range& range, int32_t f, int64_t size, int64_t pivots, int64_t) {
        const int64_t first = begin + kPivotBlock;
        for (int64_t column = first; column < pivots; column += kFrontTile)
          for (int64_t row = column; row < size; row += kFrontTile) add(range, f, block, row, column);
      });
    }
    all(level.updates, [&](Range& range, int32_t f, int64_t, int64_t, int64_t rest) {
      for (int64_t column = 0; column < rest; column += kFrontTile)
        for (int64_t row = column; row < rest; row += kFrontTile) add(range, f, row, column);
    });
    all(level.rows, [&](Range& range, int32_t f, int64_t, int64_t, int64_t rest) {
      for (int64_t row = 0; row < rest; row += kForwardRows) add(range, f, row);
    });
    all(level.columns, [&](Range& range, int32_t f, int64_t, int64_t pivots, int64_t rest) {
      for (int64_t column = 0; rest > 0 && column < pivots; column += kBackwardColumns) add(range, f, column);
    });
    levels.push_back(std::move(level));
  }
}

double FrontPlan::bytes(int real_bytes) const {
  const double tables = double(work.size() + fronts.size() + children.size() + places.size() + rows.size() +
                               value_at.size() + diagonal_at.size() + order.size());
  const double numbers = double(panels) + double(updates) + 2.0 * double(steps) * kPivotBlock * kPivotBlock +
                         double(rows.size()) + double(value_at.size()) + 5.0 * double(unknowns);
  return 4 * tables + real_bytes * numbers;
}

}  // namespace lockstep::solve
