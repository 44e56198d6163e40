#include "solve/linear/normal_equations.hpp"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <numeric>

#include "lockstep/error.hpp"
#include "solve/linear/cholesky/dense_kernels.hpp"

namespace lockstep::solve {
namespace {

/// The order that sorts `keys` (0 … count - 1), equal ones as `order` has them.
std::vector<int32_t> sorted_by(const std::vector<int32_t>& keys, int64_t count,
                               const std::vector<int32_t>& order) {
  std::vector<int32_t> first(size_t(count) + 1, 0), out(order.size());
  for (const int32_t key : keys) ++first[size_t(key) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  for (const int32_t at : order) out[size_t(first[size_t(keys[size_t(at)])]++)] = at;
  return out;
}

}  // namespace

NormalEquations::NormalEquations(std::span<const HostBatch> batches) {
  int64_t coordinates = 0;
  for (const HostBatch& batch : batches)
    for (const int64_t column : batch.columns) coordinates = std::max(coordinates, column + 1);
  std::vector<int32_t> widths(size_t(coordinates), 0), block_of(size_t(coordinates), -1);
  for (const HostBatch& batch : batches) {
    std::vector<int32_t> starts{0};
    for (const int width : batch.widths) starts.push_back(starts.back() + width);
    starts_.push_back(std::move(starts));
    const size_t slots = batch.widths.size();
    for (size_t k = 0; k < batch.columns.size(); ++k)
      if (batch.columns[k] >= 0) widths[size_t(batch.columns[k])] = batch.widths[k % slots];
  }
  pattern_.first = {0};
  for (int64_t column = 0; column < coordinates; ++column) {
    if (widths[size_t(column)] == 0) continue;
    block_of[size_t(column)] = int32_t(columns_.size());
    columns_.push_back(column);
    pattern_.first.push_back(pattern_.first.back() + widths[size_t(column)]);
  }

  std::vector<int32_t> rows, columns;  // blocks, by source
  std::vector<Source> sources;
  for (size_t b = 0; b < batches.size(); ++b) {
    const HostBatch& batch = batches[b];
    const size_t slots = batch.widths.size();
    std::vector<int32_t> at(slots);
    for (int64_t n = 0; n < batch.instances; ++n) {
      for (size_t s = 0; s < slots; ++s) {
        const int64_t column = batch.columns[size_t(n) * slots + s];
        at[s] = column < 0 ? -1 : block_of[size_t(column)];
      }
      for (size_t i = 0; i < slots; ++i)
        for (size_t j = 0; j < slots; ++j) {  // a block in two slots meets itself twice
          if (at[i] < 0 || at[j] < 0 || at[i] < at[j]) continue;
          rows.push_back(at[i]), columns.push_back(at[j]);
          sources.push_back({int32_t(b), int32_t(i), int32_t(j), n});
        }
    }
  }
  if (sources.size() > size_t(INT32_MAX))
    throw InputError(fmt::format("{} products of blocks", sources.size()), "solve.linear",
                     fmt::format("at most {}", INT32_MAX));
  std::vector<int32_t> order(sources.size());
  std::iota(order.begin(), order.end(), 0);
  order = sorted_by(rows, pattern_.blocks(), order);
  order = sorted_by(columns, pattern_.blocks(), order);
  sources_.reserve(sources.size());
  for (const int32_t k : order) {
    const int32_t row = rows[size_t(k)], column = columns[size_t(k)];
    if (pattern_.rows.empty() || pattern_.rows.back() != row || pattern_.columns.back() != column) {
      pattern_.rows.push_back(row);
      pattern_.columns.push_back(column);
      first_source_.push_back(int64_t(sources_.size()));
    }
    sources_.push_back(sources[size_t(k)]);
  }
  first_source_.push_back(int64_t(sources_.size()));
  offsets_ = pattern_.offsets();
}

int64_t NormalEquations::block_at(int64_t column) const {
  const auto found = std::lower_bound(columns_.begin(), columns_.end(), column);
  return found != columns_.end() && *found == column ? found - columns_.begin() : -1;
}

std::vector<int32_t> NormalEquations::of_blocks(std::span<const int32_t> by_coordinate) const {
  std::vector<int32_t> out;
  for (size_t b = 0; b < columns_.size() && !by_coordinate.empty(); ++b)
    out.push_back(by_coordinate[size_t(columns_[b])]);
  return out;
}

void NormalEquations::assemble(std::span<const HostBatch> batches, std::vector<double>& values) const {
  values.resize(size_t(offsets_.back()));
  const int64_t entries = int64_t(pattern_.rows.size());
  const auto fill = [&](int64_t e) {
    const int h = int(pattern_.width(pattern_.rows[size_t(e)])),
              w = int(pattern_.width(pattern_.columns[size_t(e)]));
    double* const block = values.data() + offsets_[size_t(e)];
    std::fill(block, block + h * w, 0.0);
    for (int64_t k = first_source_[size_t(e)]; k < first_source_[size_t(e) + 1]; ++k) {
      const Source& source = sources_[size_t(k)];
      const HostBatch& batch = batches[size_t(source.batch)];
      const std::vector<int32_t>& starts = starts_[size_t(source.batch)];
      const int64_t stride = starts.back();
      const double* j = batch.jacobian.data() + source.instance * batch.rows * stride;
      const double* a = j + starts[size_t(source.row_slot)];
      const double* b = j + starts[size_t(source.column_slot)];
      if (batch.energy) {  // the Hessian itself
        a += starts[size_t(source.column_slot)] * stride;
        for (int c = 0; c < w; ++c)
          for (int r = 0; r < h; ++r) block[c * h + r] += a[c * stride + r];
      } else {
        add_products(a, stride, b, stride, batch.rows, h, w, block, h);
      }
    }
  };
  constexpr int64_t kFewestInParallel = 1024;
  if (entries < kFewestInParallel) {
    for (int64_t e = 0; e < entries; ++e) fill(e);
    return;
  }
  tbb::parallel_for(tbb::blocked_range<int64_t>(0, entries, 256), [&](const auto& range) {
    for (int64_t e = range.begin(); e < range.end(); ++e) fill(e);
  });
}

std::vector<double> NormalEquations::diagonal(std::span<const double> values) const {
  std::vector<double> out(size_t(unknowns()), 0);
  for (size_t e = 0; e < pattern_.rows.size(); ++e) {
    if (pattern_.rows[e] != pattern_.columns[e]) continue;
    const int64_t w = pattern_.width(pattern_.rows[e]);
    for (int64_t i = 0; i < w; ++i)
      out[size_t(pattern_.first[size_t(pattern_.rows[e])] + i)] = values[size_t(offsets_[e] + i * w + i)];
  }
  return out;
}

std::vector<double> NormalEquations::gather(std::span<const double> tangent) const {
  std::vector<double> out;
  out.reserve(size_t(unknowns()));
  for (int64_t b = 0; b < pattern_.blocks(); ++b)
    for (int64_t i = 0; i < pattern_.width(b); ++i) out.push_back(tangent[size_t(columns_[size_t(b)] + i)]);
  return out;
}

void NormalEquations::scatter(std::span<const double> unknowns, std::span<double> tangent) const {
  std::fill(tangent.begin(), tangent.end(), 0.0);
  for (int64_t b = 0; b < pattern_.blocks(); ++b)
    for (int64_t i = 0; i < pattern_.width(b); ++i)
      tangent[size_t(columns_[size_t(b)] + i)] = unknowns[size_t(pattern_.first[size_t(b)] + i)];
}

Eigen::MatrixXd dense_jacobian(std::span<const HostBatch> batches, const NormalEquations& equations,
                               int64_t rows) {
  Eigen::MatrixXd j = Eigen::MatrixXd::Zero(rows, equations.unknowns());
  int64_t row = 0;
  for (const HostBatch& batch : batches) {
    const double* from = batch.jacobian.data();
    const size_t slots = batch.widths.size();
    std::vector<int64_t> first(slots);  // unknown of each slot's block; -1: fixed
    for (int64_t i = 0; i < batch.instances; ++i) {
      for (size_t s = 0; s < slots; ++s) {
        const int64_t column = batch.columns[size_t(i) * slots + s];
        first[s] = column < 0 ? -1 : equations.pattern().first[size_t(equations.block_at(column))];
      }
      for (int k = 0; k < batch.rows; ++k, ++row)
        for (size_t s = 0; s < slots; from += batch.widths[s], ++s)
          for (int c = 0; first[s] >= 0 && c < batch.widths[s]; ++c) j(row, first[s] + c) += from[c];
    }
  }
  return j;
}

}  // namespace lockstep::solve
