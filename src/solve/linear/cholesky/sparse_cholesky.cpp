#include "solve/linear/cholesky/sparse_cholesky.hpp"

#include <tbb/task_group.h>

#include <Eigen/Dense>
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <utility>

#include "core/platform/threads.hpp"
#include "solve/linear/cholesky/dense_kernels.hpp"

namespace lockstep::solve {
namespace multifrontal {  // of State, so not without a name

constexpr double kTaskFlops = 2e6;          // subtrees below this run as one task
constexpr double kParallelFlops = 2e7;      // fronts above this spread over threads
constexpr int64_t kSmallUpdate = 8192;      // numbers of a Schur complement that is no large one
constexpr int64_t kSmallUpdates = 1 << 20;  // numbers of all small ones, up to which each has its own memory

/// Unknowns below a front's pivots that follow each other in the order and in the parent's front.
struct RowRun {
  int64_t first, in_parent, count;  // place in the order; place in the parent's front
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
    if (size <= kSmallUpdate) return {std::unique_ptr<double[]>(new double[size]), size};
    const std::lock_guard lock(guard_);
    const auto found = free_.lower_bound(size);
    if (found == free_.end() || found->first > 2 * size)
      return {std::unique_ptr<double[]>(new double[size]), size};
    Block block{std::move(found->second), found->first};
    free_.erase(found);
    return block;
  }
  void give(Block&& block) {
    if (block.size > kSmallUpdate) {
      const std::lock_guard lock(guard_);
      free_.emplace(block.size, std::move(block.numbers));
    }
    block = {};
  }

 private:
  Mutex guard_;
  std::multimap<size_t, std::unique_ptr<double[]>> free_;
};

}  // namespace multifrontal
using namespace multifrontal;

struct SparseCholesky::State : FrontTree {
  State(const BlockPattern& given, std::span<const int32_t> groups);

  std::vector<std::vector<RowRun>> runs;  // by front, of the rows below its pivots
  std::vector<int64_t> unknown_of;        // unknown of the pattern by unknown of the order
  std::unique_ptr<double[]> factor;
  std::vector<double> whole;          // diagonal elements before the elimination, by unknown of the order
  std::vector<double> least;          // least pivot of each front over its diagonal element
  std::vector<double> small_updates;  // Schur complements where all are small
  std::vector<int64_t> small_at;      // by front: where there; -1: not there
  std::vector<FrontMemory::Block> updates;  // the others, until the parent has taken them
  FrontMemory memory;

  double* update_of(int64_t front) {
    const int64_t at = small_at[size_t(front)];
    return at >= 0 ? small_updates.data() + at : updates[size_t(front)].numbers.get();
  }
  void take_matrix(const Front& front, int64_t index, std::span<const double> values,
                   std::span<const double> added, double* panel);
  void take_update(int64_t child, const double* update, const Front& front, double* panel,
                   double* trailing) const;
  bool eliminate(int64_t front, std::span<const double> values, std::span<const double> added);
};

SparseCholesky::State::State(const BlockPattern& given, std::span<const int32_t> groups)
    : FrontTree(given, groups), runs(fronts.size()) {
  factor.reset(new double[size_t(panels)]);  // pages are touched where they are written
  int64_t small = 0;
  for (size_t f = 0; f < fronts.size(); ++f) {
    const Front& front = fronts[f];
    unknown_of.insert(unknown_of.end(), diagonal[f].begin(), diagonal[f].end());
    const int64_t numbers = (front.size - front.pivots) * (front.size - front.pivots);
    small_at.push_back(numbers <= kSmallUpdate ? std::exchange(small, small + numbers) : -1);
    for (size_t b = 0; b < front.rows.size(); ++b) {
      const RowRun run{begins[size_t(front.rows[b])], front.in_parent[b], width(front.rows[b])};
      RowRun* const last = runs[f].empty() ? nullptr : &runs[f].back();
      if (last && last->first + last->count == run.first && last->in_parent + last->count == run.in_parent)
        last->count += run.count;
      else
        runs[f].push_back(run);
    }
  }
  whole.resize(unknown_of.size());
  if (small > kSmallUpdates)
    small_at.assign(fronts.size(), -1);
  else
    small_updates.resize(size_t(small));
}

/// The front's columns of the matrix.
void SparseCholesky::State::take_matrix(const Front& front, int64_t index, std::span<const double> values,
                                        std::span<const double> added, double* panel) {
  const int64_t n = front.size;
  for (int64_t j = 0; j < front.pivots; ++j) std::fill(panel + j * n + j, panel + (j + 1) * n, 0.0);
  for (const PlacedBlock& block : placed[size_t(index)]) {
    const double* from = values.data() + block.values;
    double* to = panel + block.column * n + block.row;
    if (block.transposed)
      for (int32_t j = 0; j < block.width; ++j)
        for (int32_t i = 0; i < block.height; ++i) to[i * n + j] = from[j * block.height + i];
    else
      for (int32_t j = 0; j < block.width; ++j)
        for (int32_t i = 0; i < block.height; ++i) to[j * n + i] = from[j * block.height + i];
  }
  const int64_t first = begins[size_t(front.first)];
  for (int64_t k = 0; k < front.pivots; ++k)
    whole[size_t(first + k)] = panel[k * n + k] += added[size_t(unknown_of[size_t(first + k)])];
}

/// Adds a child's Schur complement.
void SparseCholesky::State::take_update(int64_t index, const double* update, const Front& front,
                                        double* panel, double* trailing) const {
  const Front& child = fronts[size_t(index)];
  const std::vector<RowRun>& rows = runs[size_t(index)];
  const int64_t size = child.size - child.pivots, rest = front.size - front.pivots;
  const double* from = update;  // element (j, j) of the child's
  for (size_t b = 0; b < rows.size(); ++b)
    for (int64_t j = 0; j < rows[b].count; ++j, from += size + 1) {
      const int64_t column = rows[b].in_parent + j;
      const bool own = column < front.pivots;
      double* const to = own ? panel + column * front.size : trailing + (column - front.pivots) * rest;
      const double* next = from;
      int64_t row = column;
      int64_t count = rows[b].count - j;
      for (size_t k = b;;) {
        double* const target = to + (own ? row : row - front.pivots);
        for (int64_t i = 0; i < count; ++i) target[i] += next[i];
        next += count;
        if (++k == rows.size()) break;
        row = rows[k].in_parent, count = rows[k].count;
      }
    }
}

bool SparseCholesky::State::eliminate(int64_t index, std::span<const double> values,
                                      std::span<const double> added) {
  const Front& front = fronts[size_t(index)];
  const int64_t n = front.size, rest = n - front.pivots;
  double* const panel = factor.get() + front.panel;
  if (small_at[size_t(index)] < 0 && rest > 0) updates[size_t(index)] = memory.take(size_t(rest * rest));
  double* const trailing = update_of(index);
  take_matrix(front, index, values, added, panel);
  for (int64_t j = 0; j < rest; ++j) std::fill(trailing + j * rest + j, trailing + (j + 1) * rest, 0.0);
  for (const int64_t c : front.children) {
    take_update(c, update_of(c), front, panel, trailing);
    if (small_at[size_t(c)] < 0) memory.give(std::move(updates[size_t(c)]));
  }
  if (partial_cholesky(panel, n, front.pivots, trailing, rest, front.flops > kParallelFlops) < front.pivots)
    return false;
  double& ratio = least[size_t(index)] = 1;
  const double* const diagonal = whole.data() + begins[size_t(front.first)];
  for (int64_t k = 0; k < front.pivots; ++k)
    ratio = std::min(ratio, panel[k * n + k] * panel[k * n + k] / diagonal[k]);
  return true;
}

SparseCholesky::SparseCholesky(const BlockPattern& pattern, std::span<const int32_t> groups)
    : state_(std::make_unique<State>(pattern, groups)) {}
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
  std::vector<double> y(x.size()), local;
  for (size_t k = 0; k < y.size(); ++k) y[k] = x[size_t(s.unknown_of[k])];
  const auto gather = [&](size_t f) {
    const Front& front = s.fronts[f];
    local.resize(size_t(front.size));
    std::copy_n(y.begin() + s.begins[size_t(front.first)], front.pivots, local.begin());
    auto to = local.begin() + front.pivots;
    for (const RowRun& run : s.runs[f]) to = std::copy_n(y.begin() + run.first, run.count, to);
  };
  for (size_t f = 0; f < s.fronts.size(); ++f) {
    const Front& front = s.fronts[f];
    gather(f);
    forward_substitute(s.factor.get() + front.panel, front.size, front.pivots, local.data());
    std::copy_n(local.begin(), front.pivots, y.begin() + s.begins[size_t(front.first)]);
    auto from = local.begin() + front.pivots;
    for (const RowRun& run : s.runs[f]) {
      std::copy_n(from, run.count, y.begin() + run.first);
      from += run.count;
    }
  }
  for (size_t f = s.fronts.size(); f-- > 0;) {
    const Front& front = s.fronts[f];
    gather(f);
    backward_substitute(s.factor.get() + front.panel, front.size, front.pivots, local.data());
    std::copy_n(local.begin(), front.pivots, y.begin() + s.begins[size_t(front.first)]);
  }
  for (size_t k = 0; k < y.size(); ++k) x[size_t(s.unknown_of[k])] = y[k];
}

namespace {

/// (L L^T)^-1 of a front. Z: inverse at the rows, X = L21 L11^-1. At the pivots: L11^-T L11^-1 + X^T Z X; below: -Z X.
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
  std::vector<std::atomic<int64_t>> waiting(s.fronts.size());  // children that have yet to read it
  for (size_t f = 0; f < s.fronts.size(); ++f) waiting[f] = int64_t(s.fronts[f].children.size());
  const auto invert = [&](size_t f) {
    const Front& front = s.fronts[f];
    Eigen::MatrixXd& z = inverses[f];
    z.resize(front.size, front.size);
    if (front.parent >= 0) {
      const Eigen::MatrixXd& above = inverses[size_t(front.parent)];
      int64_t column = front.pivots;
      for (const RowRun& c : s.runs[f])
        for (int64_t j = 0; j < c.count; ++j, ++column) {
          double* to = &z(front.pivots, column);
          for (const RowRun& r : s.runs[f])
            to = std::copy_n(&above(r.in_parent, c.in_parent + j), r.count, to);
        }
    }
    invert_front(s.factor.get() + front.panel, front.size, front.pivots, z);
    for (const PlacedBlock& block : s.placed[f])
      for (int32_t j = 0; j < block.width; ++j)
        for (int32_t i = 0; i < block.height; ++i)
          out[size_t(block.values + j * block.height + i)] =
              block.transposed ? z(block.row + j, block.column + i) : z(block.row + i, block.column + j);
    if (front.children.empty()) z.resize(0, 0);
    if (front.parent >= 0 && --waiting[size_t(front.parent)] == 0)
      inverses[size_t(front.parent)].resize(0, 0);
  };
  tbb::task_group tasks;
  const std::function<void(size_t)> run = [&](size_t f) {
    if (s.fronts[f].subtree <= kTaskFlops) {
      for (size_t k = f + 1; k-- > size_t(s.fronts[f].subtree_first);) invert(k);
      return;
    }
    invert(f);
    for (const int64_t c : s.fronts[f].children) tasks.run([&run, c] { run(size_t(c)); });
  };
  for (size_t f = s.fronts.size(); f-- > 0;)
    if (s.fronts[f].parent < 0) tasks.run([&run, f] { run(f); });
  tasks.wait();
  return out;
}

double SparseCholesky::least_pivot() const {
  double out = 1;
  for (const double ratio : state_->least) out = std::min(out, ratio);
  return out;
}
int64_t SparseCholesky::factor_elements() const { return state_->panels; }
double SparseCholesky::flops() const {
  double sum = 0;
  for (const Front& front : state_->fronts) sum += front.flops;
  return sum;
}

}  // namespace lockstep::solve
