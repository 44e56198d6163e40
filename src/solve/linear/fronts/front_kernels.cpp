#include "solve/linear/fronts/front_kernels.hpp"

#include <fmt/format.h>

#include <array>

#include "lockstep/error.hpp"
#include "solve/linear/fronts/front_plan.hpp"

namespace lockstep::solve {
namespace {

using Table = Grid<i32, 2>;
using List = Grid<i32, 1>;

constexpr int kTileLanes = 256, kTileSide = 16, kTileBlock = kFrontTile / kTileSide, kTileDepth = 16;
constexpr int kPanelLanes = kPivotBlock + kPanelRows, kPivotLanes = 256;
constexpr int kDotLanes = 32;

/// A group's item of work and the words of its front.
struct Item {
  Item(const Group<1>& g, const Table& work, const Table& fronts)
      : front(uniform(work(g.id(), 0))), work_(work), fronts_(fronts), id_(g.id()) {}
  Val<i32> operator[](int k) const { return uniform(work_(id_, k)); }
  Val<i32> operator()(FrontWord word) const { return uniform(fronts_(front, int(word))); }
  Val<i32> front;

 private:
  Table work_, fronts_;
  Val<i32> id_;
};

/// Calls `use(child word, places)` for each child in order; places(i) is the child's row at the parent's row i, or -1.
template <class Use>
void for_children(const Item& item, const Table& children, const List& places, Use use) {
  for_(item(kFirstChild), item(kLastChild), [&](Val<i32> c) {
    const auto word = [&](ChildWord w) -> Val<i32> { return uniform(children(c, int(w))); };
    const Val<i32> low = word(kLow), high = word(kHigh), first = word(kPlaces) - low;
    use(word, low, high, [&](const Val<i32>& i) -> Val<i32> {
      return select(i >= low && i < high, places[first + clamp(i, low, high - 1)], Val<i32>(-1));
    });
  });
}

/// sums[a][b] += the children's numbers at (rows[a], columns[b]) of the lower triangle. The group has rows in
/// [row0, row0 + height) and columns in [column0, column0 + width).
template <class T, class Sums>
void add_children(const Item& item, const Table& children, const List& places, const InOut<T, 1>& updates,
                  const std::vector<Val<i32>>& rows, const std::vector<Val<i32>>& columns,
                  const std::array<Val<i32>, 4>& box, Sums& sums) {
  for_children(item, children, places, [&](auto word, const Val<i32>& low, const Val<i32>& high, auto place) {
    if_(low < box[0] + box[1] && high > box[0] && low < box[2] + box[3] && high > box[2], [&] {
      const Val<i32> from = word(kChildUpdate), rest = word(kChildRest);
      std::vector<Val<i32>> a, b;
      for (const Val<i32>& row : rows) a.push_back(place(row));
      for (const Val<i32>& column : columns) b.push_back(place(column));
      for (size_t i = 0; i < a.size(); ++i)
        for (size_t j = 0; j < b.size(); ++j)
          if_(b[j] >= 0 && a[i] >= b[j],
              [&] { sums[int(i * b.size() + j)] += Val<T>(updates[from + b[j] * rest + a[i]]); });
    });
  });
}

template <class T>
void gather(const Group<1>& g, const Table& work, const Table& fronts, const Table& children,
            const List& places, const InOut<T, 1>& panels, const InOut<T, 1>& updates) {
  constexpr int kAcross = kTileLanes / kGatherRows, kEach = kGatherColumns / kAcross;
  const Item item(g, work, fronts);
  const Val<i32> size = item(kSize), pivots = item(kPivots), panel = item(kPanel);
  const Val<i32> row0 = item[1], column0 = item[2], row = row0 + g.lane() % kGatherRows;
  std::vector<Val<i32>> columns;
  for (int k = 0; k < kEach; ++k) columns.push_back(column0 + g.lane() / kGatherRows + k * kAcross);
  VarArray<T, kEach> sums(T(0));
  add_children<T>(item, children, places, updates, {row}, columns,
                  {row0, kGatherRows, column0, kGatherColumns}, sums);
  for (int k = 0; k < kEach; ++k) {
    const Val<i32> column = columns[size_t(k)];
    if_(row < size && column < pivots && row >= column,
        [&] { panels[panel + column * size + row] += Val<T>(sums[k]); });
  }
}

/// Lanes below kPivotBlock have the rows of the diagonal block, the others rows below it; each keeps its row. Every
/// group of a front factorises the diagonal block for itself, the first one writes it.
template <class T>
void panel(const Group<1>& g, const Table& work, const Table& fronts, const Grid<T, 1>& whole,
           const InOut<T, 1>& panels, const Out<T, 1>& diagonals, const Out<T, 1>& pivots) {
  const Item item(g, work, fronts);
  const Val<i32> size = item(kSize), base = item(kPanel), block = item[1], lane = g.lane();
  const Val<i32> begin = block * kPivotBlock, width = min(item(kPivots) - begin, kPivotBlock);
  const Val<bool> top = lane < kPivotBlock, first = item[2] == begin + width;
  const Val<i32> row = select(top, begin + lane, item[2] + lane - kPivotBlock);
  const Val<bool> inside = row < select(top, begin + width, size);
  // Lanes without a row read the block's first one, which no group writes.
  const Val<i32> own_row = select(inside, row, begin);
  const auto at = [&](int k) { return base + (begin + min(width - 1, k)) * size + own_row; };
  VarArray<T, kPivotBlock> x([&](int k) {
    return select(inside && width > k, Val<T>(panels[at(k)]), select(lane == k, T(1), T(0)));
  });
  const SharedArray<T> columns(kPivotBlock * kPivotBlock);
  Var<T> own = T(1);
  constexpr int kRun = 8;
  for (int k0 = 0; k0 < kPivotBlock; k0 += kRun)
    if_(width > k0, [&] {
      for (int k = k0; k < k0 + kRun; ++k) {
        if_(top, [&] { columns[lane + k * kPivotBlock] = Val<T>(x[k]); });
        barrier();
        const Val<T> pivot = columns[k * kPivotBlock + k];
        const Val<T> safe = select(pivot > T(0) && isfinite(pivot), pivot, T(1));
        own = select(lane == k, pivot, Val<T>(own));
        const Val<T> root = T(1) / sqrt(safe), factor = Val<T>(x[k]) / safe;
        for (int j = k + 1; j < kPivotBlock; ++j)
          x[j] = fma(-factor, Val<T>(columns[k * kPivotBlock + j]), Val<T>(x[j]));
        x[k] *= root;
      }
    });
  for (int k = 0; k < kPivotBlock; ++k)
    if_(!top && inside && width > k, [&] { panels[at(k)] = Val<T>(x[k]); });
  if_(top && first, [&] {
    const Val<i32> to = (item(kFirstStep) + block) * (kPivotBlock * kPivotBlock) + lane;
    for (int k = 0; k < kPivotBlock; ++k)
      diagonals[to + k * kPivotBlock] = select(lane >= k, Val<T>(x[k]), T(0));
    if_(inside, [&] {
      const Val<i32> place = item(kFirstUnknown) + begin + lane;
      const Val<T> ratio = Val<T>(own) / whole[place];
      pivots[place] = select(own > T(0) && isfinite(Val<T>(own)) && ratio > T(0), min(ratio, T(1)),
                             cast<T>(place) - T(kFailedPivot));
    });
  });
}

/// Rows and columns that a lane has of a tile, clamped for reading.
struct Tile {
  Tile(const Group<1>& g, const Val<i32>& row0, const Val<i32>& column0) : row0(row0), column0(column0) {
    for (int k = 0; k < kTileBlock; ++k) {
      rows.push_back(row0 + g.lane() % kTileSide + k * kTileSide);
      columns.push_back(column0 + g.lane() / kTileSide * kTileBlock + k);
    }
  }
  Val<i32> row0, column0;
  std::vector<Val<i32>> rows, columns;
};

/// sums[a][b] = sum over k < depth, in order, of x(rows[a], k) x(columns[b], k); x must take any row.
template <class T, class Read>
void multiply_tile(const Group<1>& g, const Tile& tile, const Val<i32>& depth, Read read,
                   VarArray<T, kTileBlock * kTileBlock>& sums) {
  const SharedArray<T> left(kFrontTile * kTileDepth), right(kFrontTile * kTileDepth);
  const Val<i32> lane = g.lane(), tx = lane % kTileSide, ty = lane / kTileSide * kTileBlock;
  for_(0, depth, kTileDepth, [&](Val<i32> k0) {
    for (int p = 0; p < kFrontTile * kTileDepth; p += kTileLanes) {
      const Val<i32> i = lane % kFrontTile, k = lane / kFrontTile + p / kFrontTile,
                     from = min(k0 + k, depth - 1);
      left[k * kFrontTile + i] = read(tile.row0 + i, from);
      right[k * kFrontTile + i] = read(tile.column0 + i, from);
    }
    barrier();
    for_(0, min(depth - k0, kTileDepth), [&](Val<i32> k) {
      std::vector<Val<T>> a, b;
      for (int i = 0; i < kTileBlock; ++i) a.push_back(left[k * kFrontTile + tx + i * kTileSide]);
      for (int j = 0; j < kTileBlock; ++j) b.push_back(right[k * kFrontTile + ty + j]);
      for (int i = 0; i < kTileBlock; ++i)
        for (int j = 0; j < kTileBlock; ++j) {
          Var<T>& sum = sums[i * kTileBlock + j];
          sum = fma(a[size_t(i)], b[size_t(j)], Val<T>(sum));
        }
    });
    barrier();
  });
}

template <class T>
void trail(const Group<1>& g, const Table& work, const Table& fronts, const InOut<T, 1>& panels) {
  const Item item(g, work, fronts);
  const Val<i32> size = item(kSize), pivots = item(kPivots), base = item(kPanel),
                 begin = item[1] * kPivotBlock;
  const Tile tile(g, item[2], item[3]);
  VarArray<T, kTileBlock * kTileBlock> sums(T(0));
  const auto read = [&](const Val<i32>& row, const Val<i32>& k) {
    return Val<T>(panels[base + (begin + k) * size + min(row, size - 1)]);
  };
  multiply_tile<T>(g, tile, Val<i32>(kPivotBlock), read, sums);
  for (int i = 0; i < kTileBlock; ++i)
    for (int j = 0; j < kTileBlock; ++j) {
      const Val<i32> row = tile.rows[size_t(i)], column = tile.columns[size_t(j)];
      if_(row < size && column < pivots && row >= column,
          [&] { panels[base + column * size + row] -= Val<T>(sums[i * kTileBlock + j]); });
    }
}

template <class T>
void update(const Group<1>& g, const Table& work, const Table& fronts, const Table& children,
            const List& places, const Grid<T, 1>& panels, const InOut<T, 1>& updates) {
  const Item item(g, work, fronts);
  const Val<i32> size = item(kSize), pivots = item(kPivots), rest = item(kRest), to = item(kUpdate);
  const Val<i32> below = item(kPanel) + pivots;
  const Tile tile(g, item[1], item[2]);
  VarArray<T, kTileBlock * kTileBlock> product(T(0)), sums(T(0));
  const auto read = [&](const Val<i32>& row, const Val<i32>& k) {
    return Val<T>(panels[below + k * size + min(row, rest - 1)]);
  };
  multiply_tile<T>(g, tile, pivots, read, product);
  std::vector<Val<i32>> rows, columns;
  for (const Val<i32>& row : tile.rows) rows.push_back(row + pivots);
  for (const Val<i32>& column : tile.columns) columns.push_back(column + pivots);
  add_children<T>(item, children, places, updates, rows, columns,
                  {tile.row0 + pivots, kFrontTile, tile.column0 + pivots, kFrontTile}, sums);
  for (int i = 0; i < kTileBlock; ++i)
    for (int j = 0; j < kTileBlock; ++j) {
      const Val<i32> row = tile.rows[size_t(i)], column = tile.columns[size_t(j)];
      const int k = i * kTileBlock + j;
      if_(row < rest && row >= column,
          [&] { updates[to + column * rest + row] = Val<T>(sums[k]) - Val<T>(product[k]); });
    }
}

/// A lane has a column of the inverse of a diagonal block.
template <class T>
void invert(const At<2>& at, const Grid<T, 1>& diagonals, const Out<T, 1>& inverses) {
  const Val<i32> base = at.y * (kPivotBlock * kPivotBlock), column = at.x;
  VarArray<T, kPivotBlock> x([&](int k) { return select(column == k, Val<T>(T(1)), Val<T>(T(0))); });
  for (int k = 0; k < kPivotBlock; ++k) {
    x[k] /= diagonals[base + (k * kPivotBlock + k)];
    for (int i = k + 1; i < kPivotBlock; ++i)
      x[i] = fma(-Val<T>(x[k]), diagonals[base + (k * kPivotBlock + i)], Val<T>(x[i]));
    inverses[base + column * kPivotBlock + k] = Val<T>(x[k]);
  }
}

/// The sum of what the children's rows bring to row i of the front, onto `sum`.
template <class T>
void add_sent(const Item& item, const Table& children, const List& places, const InOut<T, 1>& sent,
              const Val<i32>& i, Var<T>& sum) {
  for_children(item, children, places, [&](auto word, const Val<i32>&, const Val<i32>&, auto place) {
    const Val<i32> from = place(i);
    if_(from >= 0, [&] { sum += Val<T>(sent[word(kChildRows) + from]); });
  });
}

/// Multiplies the block's part of y by the inverse of its diagonal block, or by its transpose; the result also
/// in `x`.
template <class T>
void solve_block(const Group<1>& g, const Item& item, const Val<i32>& block, const Val<i32>& begin,
                 const Val<i32>& width, bool transposed, const Grid<T, 1>& inverses, const InOut<T, 1>& y,
                 const SharedArray<T>& x, const SharedArray<T>& z) {
  const Val<i32> lane = g.lane(), at = item(kFirstUnknown) + begin + min(lane, width - 1);
  const Val<i32> inverse = (item(kFirstStep) + block) * (kPivotBlock * kPivotBlock);
  if_(lane < kPivotBlock, [&] { z[lane] = select(lane < width, Val<T>(y[at]), T(0)); });
  barrier();
  if_(lane < kPivotBlock, [&] {
    Var<T> sum = T(0);
    for (int k = 0; k < kPivotBlock; ++k) {
      const Val<i32> place = transposed ? Val<i32>(lane * kPivotBlock + k) : Val<i32>(lane + k * kPivotBlock);
      sum = fma(inverses[inverse + place], Val<T>(z[k]), Val<T>(sum));
    }
    x[lane] = Val<T>(sum);
    if_(lane < width, [&] { y[at] = Val<T>(sum); });
  });
  barrier();
}

template <class T>
void forward(const Group<1>& g, const Table& work, const Table& fronts, const Table& children,
             const List& places, const Grid<T, 1>& panels, const Grid<T, 1>& inverses,
             const InOut<T, 1>& sent, const InOut<T, 1>& y) {
  const Item item(g, work, fronts);
  const Val<i32> size = item(kSize), pivots = item(kPivots), base = item(kPanel), first = item(kFirstUnknown);
  const SharedArray<T> x(kPivotBlock), z(kPivotBlock);
  for_(g.lane(), pivots, kPivotLanes, [&](Val<i32> i) {
    Var<T> sum = Val<T>(y[first + i]);
    add_sent<T>(item, children, places, sent, i, sum);
    y[first + i] = Val<T>(sum);
  });
  barrier();
  for_(0, (pivots + (kPivotBlock - 1)) / kPivotBlock, [&](Val<i32> block) {
    const Val<i32> begin = block * kPivotBlock, width = min(pivots - begin, kPivotBlock);
    solve_block<T>(g, item, block, begin, width, false, inverses, y, x, z);
    for_(begin + width + g.lane(), pivots, kPivotLanes, [&](Val<i32> i) {
      Var<T> sum = T(0);
      for_(0, width,
           [&](Val<i32> k) { sum = fma(panels[base + (begin + k) * size + i], Val<T>(x[k]), Val<T>(sum)); });
      y[first + i] -= Val<T>(sum);
    });
    barrier();
  });
}

template <class T>
void rows_below(const Group<1>& g, const Table& work, const Table& fronts, const Table& children,
                const List& places, const Grid<T, 1>& panels, const Grid<T, 1>& y, const InOut<T, 1>& sent) {
  const Item item(g, work, fronts);
  const Val<i32> size = item(kSize), pivots = item(kPivots), rest = item(kRest), first = item(kFirstUnknown);
  const Val<i32> i = item[1] + g.lane();
  if_(i < rest, [&] {
    Var<T> sum = T(0), product = T(0);
    add_sent<T>(item, children, places, sent, pivots + i, sum);
    const Val<i32> from = item(kPanel) + pivots + i;
    for_(0, pivots,
         [&](Val<i32> k) { product = fma(panels[from + k * size], y[first + k], Val<T>(product)); });
    sent[item(kRows) + i] = Val<T>(sum) - Val<T>(product);
  });
}

template <class T>
void columns_above(const Group<1>& g, const Table& work, const Table& fronts, const List& rows,
                   const Grid<T, 1>& panels, const InOut<T, 1>& y) {
  const Item item(g, work, fronts);
  const Val<i32> size = item(kSize), pivots = item(kPivots), rest = item(kRest), first = item(kRows);
  const Val<i32> lane = g.lane(), part = lane % kDotLanes, column = item[1] + lane / kDotLanes;
  const Val<i32> from = item(kPanel) + min(column, pivots - 1) * size + pivots;
  const SharedArray<T> parts(kDotLanes * kBackwardColumns);
  Var<T> sum = T(0);
  for_(part, rest, kDotLanes,
       [&](Val<i32> i) { sum = fma(panels[from + i], Val<T>(y[rows[first + i]]), Val<T>(sum)); });
  parts[lane] = Val<T>(sum);
  barrier();
  for (int s = kDotLanes / 2; s > 0; s /= 2) {
    if_(part < s, [&] { parts[lane] += Val<T>(parts[lane + s]); });
    barrier();
  }
  if_(part == 0 && column < pivots, [&] { y[item(kFirstUnknown) + column] -= Val<T>(parts[lane]); });
}

template <class T>
void backward(const Group<1>& g, const Table& work, const Table& fronts, const Grid<T, 1>& panels,
              const Grid<T, 1>& inverses, const InOut<T, 1>& y) {
  const Item item(g, work, fronts);
  const Val<i32> size = item(kSize), pivots = item(kPivots), base = item(kPanel), first = item(kFirstUnknown);
  const SharedArray<T> x(kPivotBlock), z(kPivotBlock);
  const Val<i32> blocks = (pivots + (kPivotBlock - 1)) / kPivotBlock;
  for_(0, blocks, [&](Val<i32> back) {
    const Val<i32> block = blocks - 1 - back, begin = block * kPivotBlock,
                   width = min(pivots - begin, kPivotBlock);
    solve_block<T>(g, item, block, begin, width, true, inverses, y, x, z);
    for_(g.lane(), begin, kPivotLanes, [&](Val<i32> j) {
      Var<T> sum = T(0);
      for_(0, width,
           [&](Val<i32> k) { sum = fma(panels[base + j * size + begin + k], Val<T>(x[k]), Val<T>(sum)); });
      y[first + j] -= Val<T>(sum);
    });
    barrier();
  });
}

template <class T>
std::string named(const char* what) {
  return fmt::format("solve.fronts.{}.{}", what, name(lockstep::detail::kType<T>));
}

/// Kernels of a step that moves numbers.
template <class T>
Kernel moving_kernel(FrontStep step) {
  switch (step) {
    case FrontStep::scatter:
      return kernel(named<T>("scatter"), [](At<1> at, List to, Grid<T, 1> values, InOut<T, 1> panels) {
        panels[to[at]] = values[at];
      });
    case FrontStep::diagonal:
      return kernel(named<T>("diagonal"), [](At<1> at, List diagonal, List order, Grid<T, 1> added,
                                             InOut<T, 1> panels, InOut<T, 1> whole) {
        const Val<i32> place = diagonal[at];
        const Val<T> sum = Val<T>(panels[place]) + added[at];
        panels[place] = sum;
        whole[order[at]] = sum;
      });
    case FrontStep::invert:
      return kernel(named<T>("invert"), [](At<2> at, Grid<T, 1> diagonals, Out<T, 1> inverses) {
        invert<T>(at, diagonals, inverses);
      });
    case FrontStep::order:
      return kernel(named<T>("order"),
                    [](At<1> at, List order, Grid<T, 1> x, InOut<T, 1> y) { y[order[at]] = x[at]; });
    case FrontStep::restore:
      return kernel(named<T>("restore"),
                    [](At<1> at, List order, Grid<T, 1> y, Out<T, 1> x) { x[at] = y[order[at]]; });
    default:
      return kernel(named<T>("least"),
                    [](Group<1> g, Grid<T, 1> pivots, Out<T, 1> least) {
                      Var<T> low = T(1);
                      for_(g.id() * kLeastChunk + g.lane(), min(pivots.size(0), (g.id() + 1) * kLeastChunk),
                           kTileLanes, [&](Val<i32> i) { low = min(Val<T>(low), pivots[i]); });
                      const Val<T> all = group_min(Val<T>(low));
                      if_(g.lane() == 0, [&] { least[g.id()] = all; });
                    },
                    {.group = {kTileLanes}});
  }
}

template <class T>
Kernel factor_kernel(FrontStep step) {
  switch (step) {
    case FrontStep::gather:
      return kernel(
          named<T>("gather"),
          [](Group<1> g, Table work, Table fronts, Table children, List places, InOut<T, 1> panels,
             InOut<T, 1> updates) { gather<T>(g, work, fronts, children, places, panels, updates); },
          {.group = {kTileLanes}});
    case FrontStep::panel:
      return kernel(
          named<T>("panel"),
          [](Group<1> g, Table work, Table fronts, Grid<T, 1> whole, InOut<T, 1> panels, Out<T, 1> diagonals,
             Out<T, 1> pivots) { panel<T>(g, work, fronts, whole, panels, diagonals, pivots); },
          {.group = {kPanelLanes}});
    case FrontStep::trail:
      return kernel(
          named<T>("trail"),
          [](Group<1> g, Table work, Table fronts, InOut<T, 1> panels) { trail<T>(g, work, fronts, panels); },
          {.group = {kTileLanes}});
    default:
      return kernel(
          named<T>("update"),
          [](Group<1> g, Table work, Table fronts, Table children, List places, Grid<T, 1> panels,
             InOut<T, 1> updates) { update<T>(g, work, fronts, children, places, panels, updates); },
          {.group = {kTileLanes}});
  }
}

template <class T>
Kernel substitution_kernel(FrontStep step) {
  switch (step) {
    case FrontStep::forward:
      return kernel(named<T>("forward"),
                    [](Group<1> g, Table work, Table fronts, Table children, List places, Grid<T, 1> panels,
                       Grid<T, 1> inverses, InOut<T, 1> sent, InOut<T, 1> y) {
                      forward<T>(g, work, fronts, children, places, panels, inverses, sent, y);
                    },
                    {.group = {kPivotLanes}});
    case FrontStep::rows:
      return kernel(named<T>("rows"),
                    [](Group<1> g, Table work, Table fronts, Table children, List places, Grid<T, 1> panels,
                       Grid<T, 1> y, InOut<T, 1> sent) {
                      rows_below<T>(g, work, fronts, children, places, panels, y, sent);
                    },
                    {.group = {kForwardRows}});
    case FrontStep::columns:
      return kernel(named<T>("columns"),
                    [](Group<1> g, Table work, Table fronts, List rows, Grid<T, 1> panels, InOut<T, 1> y) {
                      columns_above<T>(g, work, fronts, rows, panels, y);
                    },
                    {.group = {kDotLanes * kBackwardColumns}});
    default:
      return kernel(named<T>("backward"),
                    [](Group<1> g, Table work, Table fronts, Grid<T, 1> panels, Grid<T, 1> inverses,
                       InOut<T, 1> y) { backward<T>(g, work, fronts, panels, inverses, y); },
                    {.group = {kPivotLanes}});
  }
}

template <class T>
const Kernel& kernel_of(FrontStep step) {
  static const std::array<Kernel, kFrontSteps> all = [] {
    std::array<Kernel, kFrontSteps> kernels;
    for (int k = 0; k < kFrontSteps; ++k) {
      const FrontStep s = FrontStep(k);
      const bool factor = s >= FrontStep::gather && s <= FrontStep::update;
      const bool substitution = s >= FrontStep::forward && s <= FrontStep::backward;
      kernels[size_t(k)] = factor         ? factor_kernel<T>(s)
                           : substitution ? substitution_kernel<T>(s)
                                          : moving_kernel<T>(s);
    }
    return kernels;
  }();
  return all[size_t(step)];
}

}  // namespace

const Kernel& front_kernel(FrontStep step, Storage real) {
  return real == Storage::f64 ? kernel_of<f64>(step) : kernel_of<f32>(step);
}

}  // namespace lockstep::solve
