#include "solve/linear/normal_equations.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <utility>

#include "solve/linear/dense_kernels.hpp"

namespace lockstep::solve {
NormalEquations::NormalEquations(std::span<const HostBatch> batches) {
  std::vector<std::pair<int64_t, int>> blocks;  // column, width
  for (const HostBatch& batch : batches) {
    std::vector<int32_t> starts{0};
    for (const int width : batch.widths) starts.push_back(starts.back() + width);
    starts_.push_back(std::move(starts));
    const size_t slots = batch.widths.size();
    for (size_t k = 0; k < batch.columns.size(); ++k)
      if (batch.columns[k] >= 0) blocks.emplace_back(batch.columns[k], batch.widths[k % slots]);
  }
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  pattern_.first = {0};
  for (const auto& [column, width] : blocks) {
    columns_.push_back(column);
    pattern_.first.push_back(pattern_.first.back() + width);
  }

  struct Keyed {
    int64_t column, row;  // blocks
    Source source;
  };
  std::vector<Keyed> keyed;
  for (size_t b = 0; b < batches.size(); ++b) {
    const HostBatch& batch = batches[b];
    const size_t slots = batch.widths.size();
    std::vector<int64_t> at(slots);
    for (int64_t n = 0; n < batch.instances; ++n) {
      for (size_t s = 0; s < slots; ++s) {
        const int64_t column = batch.columns[size_t(n) * slots + s];
        at[s] = column < 0 ? -1 : block_at(column);
      }
      for (size_t i = 0; i < slots; ++i)
        for (size_t j = 0; j < slots; ++j)  // a block in two slots meets itself twice
          if (at[i] >= 0 && at[j] >= 0 && at[i] >= at[j])
            keyed.push_back({at[j], at[i], {int32_t(b), int32_t(i), int32_t(j), n}});
    }
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
    return std::pair(a.column, a.row) < std::pair(b.column, b.row);
  });
  for (const Keyed& k : keyed) {
    if (pattern_.rows.empty() || pattern_.rows.back() != k.row || pattern_.columns.back() != k.column) {
      pattern_.rows.push_back(int32_t(k.row));
      pattern_.columns.push_back(int32_t(k.column));
      first_source_.push_back(int64_t(sources_.size()));
    }
    sources_.push_back(k.source);
  }
  first_source_.push_back(int64_t(sources_.size()));
  offsets_ = pattern_.offsets();
}

int64_t NormalEquations::block_at(int64_t column) const {
  const auto found = std::lower_bound(columns_.begin(), columns_.end(), column);
  return found != columns_.end() && *found == column ? found - columns_.begin() : -1;
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

}  // namespace lockstep::solve
