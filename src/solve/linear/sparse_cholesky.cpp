#include "solve/linear/sparse_cholesky.hpp"

#include <tbb/task_group.h>

#include <Eigen/Dense>
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>

#include "solve/linear/dense_kernels.hpp"

namespace lockstep::solve {
namespace multifrontal {  // of State, so not without a name

constexpr double kTaskFlops = 2e6;      // subtrees below this run as one task
constexpr double kParallelFlops = 2e7;  // fronts above this spread over threads

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

}  // namespace multifrontal
using namespace multifrontal;

struct SparseCholesky::State : FrontTree {
  using FrontTree::FrontTree;
  std::vector<double> factor;
  std::vector<double> least;                // least pivot of each front over its diagonal element
  std::vector<FrontMemory::Block> updates;  // fronts whose parent has yet to take them
  FrontMemory memory;

  bool eliminate(int64_t front, std::span<const double> values, std::span<const double> added);
};

bool SparseCholesky::State::eliminate(int64_t index, std::span<const double> values,
                                      std::span<const double> added) {
  const Front& front = fronts[size_t(index)];
  const int64_t n = front.size;
  FrontMemory::Block matrix = memory.take(size_t(n * n));
  double* const a = matrix.numbers.get();
  for (int64_t j = 0; j < n; ++j) std::fill(a + j * n + j, a + (j + 1) * n, 0.0);
  for (const PlacedBlock& block : placed[size_t(index)]) {
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

SparseCholesky::SparseCholesky(const BlockPattern& pattern) : state_(std::make_unique<State>(pattern)) {
  state_->factor.resize(size_t(state_->panels));
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
    for (const PlacedBlock& block : s.placed[f])
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
