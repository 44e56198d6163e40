// Eliminates blocks that share no term, each by its own small factor, and factorises what they leave of the
// others as one dense matrix. In bundle adjustment those are the points and the cameras.
#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "solve/linear/cholesky/dense_kernels.hpp"
#include "solve/linear/normal_solver.hpp"

namespace lockstep::solve {
namespace {

constexpr int64_t kMostKept = 15'000;  // unknowns of the dense matrix: 1.8 GB
constexpr int kMostWidth = 16;         // unknowns of an eliminated block

/// Lower Cholesky factor of a small matrix (w, w; column-major) in place.
bool factor_small(double* v, int64_t w) {
  for (int64_t k = 0; k < w; ++k) {
    const double whole = v[k * w + k];
    double pivot = whole;
    for (int64_t j = 0; j < k; ++j) pivot -= v[j * w + k] * v[j * w + k];
    if (!(pivot > kLeastPivot * whole) || !std::isfinite(pivot)) return false;
    pivot = std::sqrt(pivot);
    v[k * w + k] = pivot;
    for (int64_t i = k + 1; i < w; ++i) {
      double sum = v[k * w + i];
      for (int64_t j = 0; j < k; ++j) sum -= v[j * w + i] * v[j * w + k];
      v[k * w + i] = sum / pivot;
    }
  }
  return true;
}

class DenseSchur final : public NormalSolver {
  /// An eliminated block and a kept one that share terms.
  struct Link {
    int32_t kept;     // number among the kept blocks
    int64_t entry;    // of the pattern
    int64_t first;    // its numbers in links_values_
    bool transposed;  // the entry has the eliminated block in its rows
  };

  void analyse() override {
    const BlockPattern& pattern = equations_.pattern();
    const int64_t blocks = pattern.blocks();
    for (std::vector<int64_t>* list : {&kept_, &eliminated_, &kept_entries_}) list->clear();
    links_.clear(), meets_.clear();
    choose(pattern);
    place_.resize(size_t(blocks));
    int64_t at = 0;
    for (int64_t b = 0; b < blocks; ++b) {
      if (number_[size_t(b)] < 0) continue;
      place_[size_t(b)] = at;
      at += pattern.width(b);
    }
    kept_unknowns_ = at;
    if (kept_unknowns_ > kMostKept)
      throw InputError(fmt::format("Schur complement of {} unknowns", kept_unknowns_), "solve.linear",
                       fmt::format("at most {}; conjugate gradients or sparse Cholesky", kMostKept));
    offsets_ = pattern.offsets();
    links_.resize(eliminated_.size());
    std::vector<int64_t> order(size_t(blocks), -1);  // of eliminated blocks
    for (size_t e = 0; e < eliminated_.size(); ++e) order[size_t(eliminated_[e])] = int64_t(e);
    own_.resize(eliminated_.size());
    int64_t numbers = 0;
    for (size_t e = 0; e < pattern.rows.size(); ++e) {
      const int32_t row = pattern.rows[e], column = pattern.columns[e];
      const int64_t r = order[size_t(row)], c = order[size_t(column)];
      if (r < 0 && c < 0) {
        kept_entries_.push_back(int64_t(e));
      } else if (row == column) {
        own_[size_t(r)] = int64_t(e);
      } else {
        const int64_t point = std::max(r, c);
        const int32_t other = r < 0 ? row : column;
        links_[size_t(point)].push_back({number_[size_t(other)], int64_t(e), numbers, r >= 0});
        numbers += pattern.width(row) * pattern.width(column);
      }
    }
    link_values_.resize(size_t(numbers));
    meets_.resize(kept_.size());
    for (size_t p = 0; p < links_.size(); ++p) {
      std::sort(links_[p].begin(), links_[p].end(),
                [](const Link& a, const Link& b) { return a.kept < b.kept; });
      for (size_t k = 0; k < links_[p].size(); ++k)
        meets_[size_t(links_[p][k].kept)].emplace_back(int32_t(p), int32_t(k));
    }
    first_factor_ = {0};
    for (const int64_t b : eliminated_)
      first_factor_.push_back(first_factor_.back() + pattern.width(b) * pattern.width(b));
    factors_.resize(size_t(first_factor_.back()));
  }

  /// The blocks of the first group. Without groups, blocks by how many others they meet, least first; each is eliminated
  /// unless a neighbour was.
  void choose(const BlockPattern& pattern) {
    const size_t blocks = size_t(pattern.blocks());
    number_.assign(blocks, 0);
    for (size_t b = 0; b < groups_.size(); ++b) {
      if (groups_[b] > 0) continue;
      if (const int64_t width = pattern.width(int64_t(b)); width > kMostWidth)
        throw InputError(fmt::format("a block of {} unknowns in the first group of the order", width),
                         "solve.linear", fmt::format("at most {}, or sparse Cholesky", kMostWidth));
      number_[b] = -1;
    }
    if (groups_.empty()) choose_independent(pattern);
    for (size_t b = 0; b < blocks; ++b) {
      if (number_[b] < 0) {
        eliminated_.push_back(int64_t(b));
      } else {
        number_[b] = int32_t(kept_.size());
        kept_.push_back(int64_t(b));
      }
    }
  }
  void choose_independent(const BlockPattern& pattern) {
    const size_t blocks = size_t(pattern.blocks());
    std::vector<std::vector<int32_t>> neighbours(blocks);
    for (size_t e = 0; e < pattern.rows.size(); ++e) {
      if (pattern.rows[e] == pattern.columns[e]) continue;
      neighbours[size_t(pattern.rows[e])].push_back(pattern.columns[e]);
      neighbours[size_t(pattern.columns[e])].push_back(pattern.rows[e]);
    }
    std::vector<int32_t> order(blocks);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return neighbours[size_t(a)].size() < neighbours[size_t(b)].size();
    });
    for (const int32_t b : order) {
      const bool free = std::none_of(neighbours[size_t(b)].begin(), neighbours[size_t(b)].end(),
                                     [&](int32_t other) { return number_[size_t(other)] < 0; });
      if (free && pattern.width(b) <= kMostWidth) number_[size_t(b)] = -1;
    }
  }

  bool factorise(std::span<const double> added) override {
    const BlockPattern& pattern = equations_.pattern();
    const int64_t n = kept_unknowns_;
    std::atomic<bool> ok{true};
    tbb::parallel_for(tbb::blocked_range<size_t>(0, eliminated_.size(), 256), [&](const auto& range) {
      for (size_t p = range.begin(); p < range.end(); ++p)
        if (!eliminate(p, added)) ok = false;
    });
    if (!ok) return false;
    matrix_.assign(size_t(n * n), 0);
    std::vector<double> whole(static_cast<size_t>(n));
    for (const int64_t e : kept_entries_) {
      const int32_t row = pattern.rows[size_t(e)], column = pattern.columns[size_t(e)];
      const int64_t h = pattern.width(row), w = pattern.width(column);
      const double* from = values_.data() + offsets_[size_t(e)];
      double* to = matrix_.data() + place_[size_t(column)] * n + place_[size_t(row)];
      for (int64_t j = 0; j < w; ++j)
        for (int64_t i = 0; i < h; ++i) to[j * n + i] = from[j * h + i];
      if (row != column) continue;
      for (int64_t i = 0; i < w; ++i) {
        to[i * n + i] += added[size_t(pattern.first[size_t(row)] + i)];
        whole[size_t(place_[size_t(row)] + i)] = to[i * n + i];
      }
    }
    // A task has a row of blocks to itself, so sums run over the eliminated blocks in their order.
    tbb::parallel_for(tbb::blocked_range<size_t>(0, kept_.size(), 1), [&](const auto& range) {
      for (size_t c = range.begin(); c < range.end(); ++c) subtract_row(c);
    });
    return dense_cholesky(matrix_, whole, kLeastPivot, true);
  }

  /// The factor L of an eliminated block, and of each of its links W L^-T.
  bool eliminate(size_t p, std::span<const double> added) {
    const BlockPattern& pattern = equations_.pattern();
    const int64_t w = pattern.width(eliminated_[p]), first = pattern.first[size_t(eliminated_[p])];
    double* v = factors_.data() + first_factor_[p];
    std::copy_n(values_.data() + offsets_[size_t(own_[p])], w * w, v);
    for (int64_t i = 0; i < w; ++i) v[i * w + i] += added[size_t(first + i)];
    if (!factor_small(v, w)) return false;
    for (const Link& link : links_[p]) {
      const int64_t h = pattern.width(kept_[size_t(link.kept)]);
      const double* from = values_.data() + offsets_[size_t(link.entry)];
      double* z = link_values_.data() + link.first;
      for (int64_t k = 0; k < w; ++k)
        for (int64_t i = 0; i < h; ++i) {
          double sum = link.transposed ? from[i * w + k] : from[k * h + i];
          for (int64_t j = 0; j < k; ++j) sum -= z[j * h + i] * v[j * w + k];
          z[k * h + i] = sum / v[k * w + k];
        }
    }
    return true;
  }

  void subtract_row(size_t c) {
    const BlockPattern& pattern = equations_.pattern();
    const int64_t n = kept_unknowns_, h = pattern.width(kept_[c]);
    double* row = matrix_.data() + place_[size_t(kept_[c])];
    for (const auto& [p, k] : meets_[c]) {
      const int64_t depth = pattern.width(eliminated_[size_t(p)]);
      const double* a = link_values_.data() + links_[size_t(p)][size_t(k)].first;
      for (int32_t other = 0; other <= k; ++other) {
        const Link& link = links_[size_t(p)][size_t(other)];
        const int64_t block = kept_[size_t(link.kept)], w = pattern.width(block);
        const double* b = link_values_.data() + link.first;
        subtract_products(a, h, b, w, depth, h, w, row + place_[size_t(block)] * n, n);
      }
    }
  }

  void substitute(std::vector<double>& x) override {
    const BlockPattern& pattern = equations_.pattern();
    std::vector<double> y(static_cast<size_t>(kept_unknowns_));
    for (const int64_t b : kept_)
      for (int64_t i = 0; i < pattern.width(b); ++i)
        y[size_t(place_[size_t(b)] + i)] = x[size_t(pattern.first[size_t(b)] + i)];
    for (size_t p = 0; p < eliminated_.size(); ++p) {
      const int64_t w = pattern.width(eliminated_[p]);
      double* own = x.data() + pattern.first[size_t(eliminated_[p])];
      forward_substitute(factors_.data() + first_factor_[p], w, w, own);
      for (const Link& link : links_[p]) {
        const int64_t block = kept_[size_t(link.kept)], h = pattern.width(block);
        const double* z = link_values_.data() + link.first;
        for (int64_t k = 0; k < w; ++k)
          for (int64_t i = 0; i < h; ++i) y[size_t(place_[size_t(block)] + i)] -= z[k * h + i] * own[k];
      }
    }
    forward_substitute(matrix_.data(), kept_unknowns_, kept_unknowns_, y.data());
    backward_substitute(matrix_.data(), kept_unknowns_, kept_unknowns_, y.data());
    for (const int64_t b : kept_)
      for (int64_t i = 0; i < pattern.width(b); ++i)
        x[size_t(pattern.first[size_t(b)] + i)] = y[size_t(place_[size_t(b)] + i)];
    for (size_t p = 0; p < eliminated_.size(); ++p) {
      const int64_t w = pattern.width(eliminated_[p]);
      double* own = x.data() + pattern.first[size_t(eliminated_[p])];
      for (const Link& link : links_[p]) {
        const int64_t block = kept_[size_t(link.kept)], h = pattern.width(block);
        const double* z = link_values_.data() + link.first;
        for (int64_t k = 0; k < w; ++k)
          for (int64_t i = 0; i < h; ++i) own[k] -= z[k * h + i] * y[size_t(place_[size_t(block)] + i)];
      }
      backward_substitute(factors_.data() + first_factor_[p], w, w, own);
    }
  }

  int64_t bytes() const override {
    return NormalSolver::bytes() + 8 * int64_t(matrix_.size() + link_values_.size() + factors_.size());
  }

  std::vector<int32_t> number_;             // by block: among the kept ones, or -1
  std::vector<int64_t> kept_, eliminated_;  // blocks
  std::vector<int64_t> place_, offsets_, own_, kept_entries_, first_factor_;
  std::vector<std::vector<Link>> links_;  // by eliminated block, ascending by kept block
  std::vector<std::vector<std::pair<int32_t, int32_t>>> meets_;  // by kept block: eliminated one, its link
  std::vector<double> link_values_, factors_, matrix_;
  int64_t kept_unknowns_ = 0;
};

}  // namespace

std::unique_ptr<HostSolver> make_dense_schur_solver() { return std::make_unique<DenseSchur>(); }

}  // namespace lockstep::solve
