#include "solve/linear/sparse_cholesky.hpp"

#include <tbb/parallel_invoke.h>
#include <tbb/task_group.h>

#include <Eigen/Dense>
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>

#include "solve/linear/dense_kernels.hpp"
#include "solve/linear/nested_dissection.hpp"

namespace lockstep::solve {
namespace multifrontal {  // of State, so not without a name

constexpr int32_t kFewestDissected = 1000;  // blocks; minimum degree alone orders fewer
constexpr double kDissectionFlops = 2000;   // a block: what dissecting costs; cheaper factors gain less
constexpr int32_t kFewestAtOnce = 20'000;   // blocks; both orders are worked out side by side
constexpr double kTaskFlops = 2e6;          // subtrees below this run as one task
constexpr double kParallelFlops = 2e7;      // fronts above this spread over threads

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

/// Memory of large fronts, kept from one to the next: fresh pages would cost a third of a factorisation.
class FrontMemory {
 public:
  struct Block {
    std::unique_ptr<double[]> numbers;
    size_t size = 0;
  };
  /// At least `size` numbers with any values.
  Block take(size_t size) {
    if (size < kKept) return {std::unique_ptr<double[]>(new double[size]), size};
    const std::scoped_lock lock(guard_);
    const auto found = free_.lower_bound(size);
    if (found == free_.end() || found->first > 2 * size)
      return {std::unique_ptr<double[]>(new double[size]), size};
    Block block{std::move(found->second), found->first};
    free_.erase(found);
    return block;
  }
  void give(Block&& block) {
    if (block.size >= kKept) {
      const std::scoped_lock lock(guard_);
      free_.emplace(block.size, std::move(block.numbers));
    }
    block = {};
  }

 private:
  static constexpr size_t kKept = 8192;
  std::mutex guard_;
  std::multimap<size_t, std::unique_ptr<double[]>> free_;
};

/// A block of the matrix in its front.
struct Placed {
  int64_t values, row, column;  // offset of its numbers; place in the front
  int32_t height, width;        // of the stored block
  bool transposed;
};

}  // namespace multifrontal
using namespace multifrontal;

std::vector<int64_t> BlockPattern::offsets() const {
  std::vector<int64_t> out{0};
  for (size_t e = 0; e < rows.size(); ++e) out.push_back(out.back() + width(rows[e]) * width(columns[e]));
  return out;
}

struct SparseCholesky::State {
  BlockPattern pattern;
  std::vector<int32_t> old_of;  // block of the pattern by place in the order
  std::vector<int64_t> begins;  // first unknown by place in the order; the last element counts all
  std::vector<Front> fronts;    // children stand before their parents
  std::vector<std::vector<Placed>> placed;
  std::vector<std::vector<int64_t>> diagonal;  // for each front, unknown of the pattern by pivot
  std::vector<double> factor;
  std::vector<double> least;                // least pivot of each front over its diagonal element
  std::vector<FrontMemory::Block> updates;  // fronts whose parent has yet to take them
  FrontMemory memory;

  int64_t width(int64_t place) const { return begins[size_t(place + 1)] - begins[size_t(place)]; }
  void amalgamate(const std::vector<std::vector<int32_t>>& below);
  void connect();
  void place();
  bool eliminate(int64_t front, std::span<const double> values, std::span<const double> added);
};

namespace {

/// Blocks below each block of the order, from the pattern.
std::vector<std::vector<int32_t>> lower_blocks(const BlockPattern& pattern,
                                               const std::vector<int32_t>& place_of) {
  std::vector<std::vector<int32_t>> lower(size_t(pattern.blocks()));
  for (size_t e = 0; e < pattern.rows.size(); ++e) {
    const int32_t a = place_of[size_t(pattern.rows[e])], b = place_of[size_t(pattern.columns[e])];
    if (a != b) lower[size_t(std::min(a, b))].push_back(std::max(a, b));
  }
  for (auto& column : lower) std::sort(column.begin(), column.end());
  return lower;
}
std::vector<int32_t> inverse(const std::vector<int32_t>& old_of) {
  std::vector<int32_t> out(old_of.size());
  for (size_t k = 0; k < old_of.size(); ++k) out[size_t(old_of[k])] = int32_t(k);
  return out;
}

/// Parents in the elimination tree, by Liu's algorithm with path compression; -1 for roots.
std::vector<int32_t> elimination_tree(const std::vector<std::vector<int32_t>>& lower) {
  const size_t n = lower.size();
  std::vector<std::vector<int32_t>> upper(n);  // for each row, the columns left of it
  for (size_t j = 0; j < n; ++j)
    for (const int32_t i : lower[j]) upper[size_t(i)].push_back(int32_t(j));
  std::vector<int32_t> parent(n, -1), ancestor(n, -1);
  for (size_t i = 0; i < n; ++i)
    for (int32_t j : upper[i])
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
std::vector<std::vector<int32_t>> structures(const std::vector<std::vector<int32_t>>& lower) {
  const size_t n = lower.size();
  std::vector<std::vector<int32_t>> below(n), children(n);
  std::vector<int32_t> seen(n, -1);
  for (size_t j = 0; j < n; ++j) {
    std::vector<int32_t>& rows = below[j];
    const auto add = [&](int32_t i) {
      if (i != int32_t(j) && seen[size_t(i)] != int32_t(j)) seen[size_t(i)] = int32_t(j), rows.push_back(i);
    };
    for (const int32_t i : lower[j]) add(i);
    for (const int32_t child : children[j])
      for (const int32_t i : below[size_t(child)]) add(i);
    std::sort(rows.begin(), rows.end());
    if (!rows.empty()) children[size_t(rows[0])].push_back(int32_t(j));
  }
  return below;
}

/// An order in postorder of its elimination tree, and what it costs.
struct Ordered {
  std::vector<int32_t> old_of;              // block of the pattern by place
  std::vector<std::vector<int32_t>> below;  // block rows of each column of the factor
  double flops = 0;
};
Ordered evaluated(const BlockPattern& pattern, const std::vector<int32_t>& old_of) {
  Ordered out;
  for (const int32_t k : postorder(elimination_tree(lower_blocks(pattern, inverse(old_of)))))
    out.old_of.push_back(old_of[size_t(k)]);
  out.below = structures(lower_blocks(pattern, inverse(out.old_of)));
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

}  // namespace

/// Columns join the front before them where it is their child and few zeros come in.
void SparseCholesky::State::amalgamate(const std::vector<std::vector<int32_t>>& below) {
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
  for (Front& front : fronts) front.rows = below[size_t(front.last - 1)];
}

void SparseCholesky::State::connect() {
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
  factor.resize(size_t(panel));
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

void SparseCholesky::State::place() {
  const std::vector<int32_t> place_of = inverse(old_of);
  std::vector<int64_t> front_of(begins.size() - 1);
  for (size_t f = 0; f < fronts.size(); ++f)
    for (int64_t k = fronts[f].first; k < fronts[f].last; ++k) front_of[size_t(k)] = int64_t(f);
  placed.resize(fronts.size());
  const std::vector<int64_t> offsets = pattern.offsets();
  for (size_t e = 0; e < pattern.rows.size(); ++e) {
    const int32_t a = place_of[size_t(pattern.rows[e])], b = place_of[size_t(pattern.columns[e])];
    const int32_t row = std::max(a, b), column = std::min(a, b);
    const Front& front = fronts[size_t(front_of[size_t(column)])];
    Placed block{offsets[e],
                 0,
                 begins[size_t(column)] - begins[size_t(front.first)],
                 int32_t(pattern.width(pattern.rows[e])),
                 int32_t(pattern.width(pattern.columns[e])),
                 a < b};
    if (row < front.last) {
      block.row = begins[size_t(row)] - begins[size_t(front.first)];
    } else {
      block.row = front.pivots;
      for (const int32_t other : front.rows) {
        if (other == row) break;
        block.row += width(other);
      }
    }
    placed[size_t(front_of[size_t(column)])].push_back(block);
  }
  diagonal.resize(fronts.size());
  for (size_t f = 0; f < fronts.size(); ++f)
    for (int64_t k = fronts[f].first; k < fronts[f].last; ++k)
      for (int64_t i = 0; i < width(k); ++i)
        diagonal[f].push_back(pattern.first[size_t(old_of[size_t(k)])] + i);
}

bool SparseCholesky::State::eliminate(int64_t index, std::span<const double> values,
                                      std::span<const double> added) {
  const Front& front = fronts[size_t(index)];
  const int64_t n = front.size;
  FrontMemory::Block matrix = memory.take(size_t(n * n));
  double* const a = matrix.numbers.get();
  for (int64_t j = 0; j < n; ++j) std::fill(a + j * n + j, a + (j + 1) * n, 0.0);
  for (const Placed& block : placed[size_t(index)]) {
    const double* from = values.data() + block.values;
    double* to = a + block.column * n + block.row;
    if (block.transposed)
      for (int32_t j = 0; j < block.width; ++j)
        for (int32_t i = 0; i < block.height; ++i) to[i * n + j] = from[j * block.height + i];
    else
      for (int32_t j = 0; j < block.width; ++j)
        for (int32_t i = 0; i < block.height; ++i) to[j * n + i] = from[j * block.height + i];
  }
  std::vector<double> whole(size_t(front.pivots));
  for (int64_t k = 0; k < front.pivots; ++k)
    whole[size_t(k)] = a[k * n + k] += added[size_t(diagonal[size_t(index)][size_t(k)])];
  for (const int64_t c : front.children) {
    const Front& child = fronts[size_t(c)];
    const double* update = updates[size_t(c)].numbers.get();
    for (size_t bj = 0, j0 = size_t(child.pivots); bj < child.rows.size(); ++bj) {
      const int64_t wj = width(child.rows[bj]);
      for (int64_t j = 0; j < wj; ++j) {
        const double* from = update + (int64_t(j0) + j) * child.size;
        double* to = a + (child.in_parent[bj] + j) * n;
        for (int64_t i = j; i < wj; ++i) to[child.in_parent[bj] + i] += from[int64_t(j0) + i];
        int64_t i0 = int64_t(j0) + wj;
        for (size_t bi = bj + 1; bi < child.rows.size(); ++bi) {
          const int64_t wi = width(child.rows[bi]);
          double* target = to + child.in_parent[bi];
          for (int64_t i = 0; i < wi; ++i) target[i] += from[i0 + i];
          i0 += wi;
        }
      }
      j0 += size_t(wj);
    }
    memory.give(std::move(updates[size_t(c)]));
  }
  if (partial_cholesky(a, n, front.pivots, front.flops > kParallelFlops) < front.pivots) return false;
  double& ratio = least[size_t(index)] = 1;
  for (int64_t k = 0; k < front.pivots; ++k)
    ratio = std::min(ratio, a[k * n + k] * a[k * n + k] / whole[size_t(k)]);
  std::copy(a, a + n * front.pivots, factor.data() + front.panel);
  if (front.parent >= 0)
    updates[size_t(index)] = std::move(matrix);
  else
    memory.give(std::move(matrix));
  return true;
}

SparseCholesky::SparseCholesky(const BlockPattern& pattern) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.pattern = pattern;
  Ordered order = best_order(pattern);
  s.old_of = std::move(order.old_of);
  s.begins = {0};
  for (const int32_t block : s.old_of) s.begins.push_back(s.begins.back() + pattern.width(block));
  s.amalgamate(order.below);
  s.connect();
  s.place();
}
SparseCholesky::~SparseCholesky() = default;
SparseCholesky::SparseCholesky(SparseCholesky&&) noexcept = default;

bool SparseCholesky::factorise(std::span<const double> values, std::span<const double> added) {
  State& s = *state_;
  s.updates.clear();
  s.updates.resize(s.fronts.size());
  s.least.assign(s.fronts.size(), 0);
  std::atomic<bool> ok{true};
  std::vector<std::atomic<int64_t>> waiting(s.fronts.size());
  tbb::task_group tasks;
  // A front whose subtree is small runs with all of it in one task; the others wait for their children.
  const auto small = [&](int64_t f) { return s.fronts[size_t(f)].subtree <= kTaskFlops; };
  const std::function<void(int64_t)> run = [&](int64_t f) {
    for (;;) {
      for (int64_t k = small(f) ? s.fronts[size_t(f)].subtree_first : f; k <= f && ok; ++k)
        if (!s.eliminate(k, values, added)) ok = false;
      const int64_t parent = s.fronts[size_t(f)].parent;
      if (parent < 0 || !ok || --waiting[size_t(parent)] != 0) return;
      f = parent;
    }
  };
  for (size_t f = 0; f < s.fronts.size(); ++f) waiting[f] = int64_t(s.fronts[f].children.size());
  for (size_t f = 0; f < s.fronts.size(); ++f) {
    const int64_t parent = s.fronts[f].parent;
    const bool starts = small(int64_t(f)) ? parent < 0 || !small(parent) : s.fronts[f].children.empty();
    if (starts) tasks.run([&run, f] { run(int64_t(f)); });
  }
  tasks.wait();
  return ok;
}

void SparseCholesky::solve(std::span<double> x) const {
  const State& s = *state_;
  std::vector<double> y(x.size());
  for (size_t k = 0; k < s.old_of.size(); ++k)
    for (int64_t i = 0; i < s.width(int64_t(k)); ++i)
      y[size_t(s.begins[k] + i)] = x[size_t(s.pattern.first[size_t(s.old_of[k])] + i)];
  std::vector<double> local;
  const auto gather = [&](const Front& front) {
    local.resize(size_t(front.size));
    std::copy_n(y.begin() + s.begins[size_t(front.first)], front.pivots, local.begin());
    int64_t at = front.pivots;
    for (const int32_t row : front.rows)
      for (int64_t i = 0; i < s.width(row); ++i) local[size_t(at++)] = y[size_t(s.begins[size_t(row)] + i)];
  };
  for (const Front& front : s.fronts) {
    gather(front);
    forward_substitute(s.factor.data() + front.panel, front.size, front.pivots, local.data());
    std::copy_n(local.begin(), front.pivots, y.begin() + s.begins[size_t(front.first)]);
    int64_t at = front.pivots;
    for (const int32_t row : front.rows)
      for (int64_t i = 0; i < s.width(row); ++i) y[size_t(s.begins[size_t(row)] + i)] = local[size_t(at++)];
  }
  for (size_t f = s.fronts.size(); f-- > 0;) {
    const Front& front = s.fronts[f];
    gather(front);
    backward_substitute(s.factor.data() + front.panel, front.size, front.pivots, local.data());
    std::copy_n(local.begin(), front.pivots, y.begin() + s.begins[size_t(front.first)]);
  }
  for (size_t k = 0; k < s.old_of.size(); ++k)
    for (int64_t i = 0; i < s.width(int64_t(k)); ++i)
      x[size_t(s.pattern.first[size_t(s.old_of[k])] + i)] = y[size_t(s.begins[k] + i)];
}

namespace {

/// (L L^T)^-1 of a front: with Z the inverse at the rows, X = L21 L11^-1: -Z X beside it, L11^-T L11^-1 + X^T Z X.
void invert_front(const double* panel, int64_t size, int64_t pivots, Eigen::MatrixXd& z) {
  const int64_t rest = size - pivots;
  const Eigen::Map<const Eigen::MatrixXd> l(panel, size, pivots);
  const auto l11 = l.topRows(pivots).triangularView<Eigen::Lower>();
  const Eigen::MatrixXd inverse = l11.solve(Eigen::MatrixXd::Identity(pivots, pivots));
  z.topLeftCorner(pivots, pivots) = inverse.transpose() * inverse;
  if (rest == 0) return;
  const Eigen::MatrixXd x = l.bottomRows(rest) * inverse;
  const Eigen::MatrixXd below = -(z.bottomRightCorner(rest, rest) * x);
  z.bottomLeftCorner(rest, pivots) = below;
  z.topRightCorner(pivots, rest) = below.transpose();
  z.topLeftCorner(pivots, pivots) -= x.transpose() * below;
}

}  // namespace

std::vector<double> SparseCholesky::inverse_entries() const {
  const State& s = *state_;
  std::vector<double> out(size_t(s.pattern.offsets().back()));
  std::vector<Eigen::MatrixXd> inverses(s.fronts.size());
  std::vector<int64_t> waiting(s.fronts.size());  // children that have yet to read it
  for (size_t f = s.fronts.size(); f-- > 0;) {
    const Front& front = s.fronts[f];
    Eigen::MatrixXd& z = inverses[f];
    z.resize(front.size, front.size);
    waiting[f] = int64_t(front.children.size());
    if (front.parent >= 0) {
      const Eigen::MatrixXd& above = inverses[size_t(front.parent)];
      std::vector<int64_t> at;  // place of each row below the pivots, in the parent
      for (size_t b = 0; b < front.rows.size(); ++b)
        for (int64_t i = 0; i < s.width(front.rows[b]); ++i) at.push_back(front.in_parent[b] + i);
      for (size_t j = 0; j < at.size(); ++j)
        for (size_t i = 0; i < at.size(); ++i)
          z(front.pivots + int64_t(i), front.pivots + int64_t(j)) = above(at[i], at[j]);
    }
    invert_front(s.factor.data() + front.panel, front.size, front.pivots, z);
    for (const Placed& block : s.placed[f])
      for (int32_t j = 0; j < block.width; ++j)
        for (int32_t i = 0; i < block.height; ++i)
          out[size_t(block.values + j * block.height + i)] =
              block.transposed ? z(block.row + j, block.column + i) : z(block.row + i, block.column + j);
    if (waiting[f] == 0) z.resize(0, 0);
    if (front.parent >= 0 && --waiting[size_t(front.parent)] == 0)
      inverses[size_t(front.parent)].resize(0, 0);
  }
  return out;
}

double SparseCholesky::least_pivot() const {
  double out = 1;
  for (const double ratio : state_->least) out = std::min(out, ratio);
  return out;
}
int64_t SparseCholesky::factor_elements() const { return int64_t(state_->factor.size()); }
double SparseCholesky::flops() const {
  double sum = 0;
  for (const Front& front : state_->fronts) sum += front.flops;
  return sum;
}

}  // namespace lockstep::solve
