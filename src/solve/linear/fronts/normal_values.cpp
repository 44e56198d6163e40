#include "solve/linear/fronts/normal_values.hpp"

#include <fmt/format.h>

#include <limits>

namespace lockstep::solve {
namespace {

/// Columns of the tables of entries and sources. Rows of a source: -1 for a Hessian.
enum EntryWord { kOffset, kHeight, kRow, kColumn, kFirstSource, kLastSource, kEntryWords };
enum SourceWord { kLeft, kRight, kStride, kSourceRows, kSourceWords };

template <class T>
std::string normal_named(const char* what) {
  return fmt::format("solve.normal.{}.{}", what, name(lockstep::detail::kType<T>));
}

/// J of the instances as dense rows from what is stored of it.
template <class T>
const Kernel& expand_kernel() {
  static const Kernel k =
      kernel(normal_named<T>("expand"), [](At<2> at, Param<i32> first, Grid<i32, 1> stored,
                                           Grid<T, 1> factors, Grid<T, 2> jacobian, InOut<T, 1> dense) {
        const Val<i32> from = stored[at.x];
        const Val<T> number = jacobian(max(from, 0), at.y);
        dense[first + at.y * stored.size(0) + at.x] = factors[at.x] * select(from < 0, T(1), number);
      });
  return k;
}

template <class T>
const Kernel& products_kernel() {
  static const Kernel k = kernel(normal_named<T>("products"), [](At<1> at, Grid<i32, 1> entry_of,
                                                                 Grid<i32, 2> entries, Grid<i32, 2> sources,
                                                                 Grid<u32, 1> held, Grid<T, 1> dense,
                                                                 Out<T, 1> values) {
    const Val<i32> entry = entry_of[at];
    const auto word = [&](EntryWord w) -> Val<i32> { return entries(entry, int(w)); };
    const Val<i32> local = Val<i32>(at.x) - word(kOffset), height = word(kHeight);
    const Val<i32> column = local / height, row = local - column * height;
    Var<T> sum = T(0);
    if_(held[word(kRow) + row] == 0u && held[word(kColumn) + column] == 0u, [&] {
      for_(word(kFirstSource), word(kLastSource), [&](Val<i32> s) {
        const Val<i32> a = Val<i32>(sources(s, int(kLeft))) + row, stride = sources(s, int(kStride));
        const Val<i32> b = Val<i32>(sources(s, int(kRight))) + column, rows = sources(s, int(kSourceRows));
        if_(
            rows < 0, [&] { sum += dense[a + column * stride]; },
            [&] {
              for_(0, rows,
                   [&](Val<i32> r) { sum = fma(dense[a + r * stride], dense[b + r * stride], Val<T>(sum)); });
            });
      });
    });
    values[at] = Val<T>(sum);
  });
  return k;
}

template <class T>
const Kernel& normal_damp_kernel() {
  static const Kernel k = kernel(
      normal_named<T>("damp"),
      [](At<1> at, Param<T> lambda, Param<T> low, Param<T> high, Grid<i32, 1> diagonal, Grid<i32, 1> tangent,
         Grid<u32, 1> held, Grid<T, 1> values, Grid<T, 1> gradient, Out<T, 1> added, Out<T, 1> x) {
        const Val<bool> free = held[at] == 0u;
        added[at] = select(free, lambda * min(max(values[diagonal[at]], low), high), T(1));
        x[at] = select(free, -gradient[tangent[at]], T(0));
      });
  return k;
}

template <class T>
const Kernel& step_kernel() {
  static const Kernel k = kernel(
      normal_named<T>("step"),
      [](At<1> at, Grid<i32, 1> tangent, Grid<T, 1> x, InOut<T, 1> step) { step[tangent[at]] = x[at]; });
  return k;
}

/// By the type of the numbers.
template <class Narrow, class Wide>
const Kernel& choose(Storage real, Narrow narrow, Wide wide) {
  return real == Storage::f64 ? wide() : narrow();
}

}  // namespace

std::vector<std::function<Kernel()>> NormalValues::kernels(Storage real) {
  return {[=] { return choose(real, expand_kernel<f32>, expand_kernel<f64>); },
          [=] { return choose(real, products_kernel<f32>, products_kernel<f64>); },
          [=] { return choose(real, normal_damp_kernel<f32>, normal_damp_kernel<f64>); },
          [=] { return choose(real, step_kernel<f32>, step_kernel<f64>); }};
}

NormalValues::NormalValues(Evaluator& evaluator, const NormalEquations& equations)
    : device_(evaluator.device()), real_(evaluator.real()), unknowns_(equations.unknowns()) {
  const Evaluator::State& s = evaluator.internals();
  for (const BatchState& batch : s.batches) {
    const TermDerivatives& term = *batch.term;
    Expansion expansion;
    expansion.first = numbers_;
    expansion.instances = batch.n;
    expansion.entries = int64_t(term.rows()) * term.columns();
    std::vector<int32_t> stored;
    std::vector<double> factors;
    for (int r = 0; r < term.rows(); ++r)
      for (int c = 0; c < term.columns(); ++c) {
        const TermDerivatives::Entry entry = term.matrix_place(r, c);
        stored.push_back(entry.stored), factors.push_back(entry.factor);
      }
    expansion.stored = device_.upload(stored);
    expansion.factors = upload_numbers(device_, real_, factors, {int64_t(factors.size())});
    numbers_ += expansion.instances * expansion.entries;
    expansions_.push_back(std::move(expansion));
  }
  if (const int64_t values = equations.pattern().offsets().back();
      std::max(numbers_, values) > std::numeric_limits<int32_t>::max())
    throw InputError(fmt::format("a Jacobian with {} numbers, J^T J with {}", numbers_, values),
                     "solve device-cholesky", "fewer than 2^31, or an iterative solver");
  dense_ = device_.allocate(real_, {numbers_});
  list_sources(evaluator.host_batches(false), equations);
  list_unknowns(equations);
  hold({});
}

void NormalValues::list_sources(const std::vector<HostBatch>& batches, const NormalEquations& equations) {
  const BlockPattern& pattern = equations.pattern();
  const std::vector<int64_t> offsets = pattern.offsets();
  std::vector<int32_t> entry_of, entries, sources;
  std::vector<std::vector<int32_t>> starts;
  for (const HostBatch& batch : batches) {
    starts.push_back({0});
    for (const int width : batch.widths) starts.back().push_back(starts.back().back() + width);
  }
  for (size_t e = 0; e < pattern.rows.size(); ++e) {
    entry_of.insert(entry_of.end(), size_t(offsets[e + 1] - offsets[e]), int32_t(e));
    const int32_t first = int32_t(sources.size() / kSourceWords);
    for (const NormalEquations::Source& source : equations.sources(e)) {
      const HostBatch& batch = batches[size_t(source.batch)];
      const std::vector<int32_t>& start = starts[size_t(source.batch)];
      const int32_t stride = start.back(), row = start[size_t(source.row_slot)],
                    column = start[size_t(source.column_slot)];
      const int64_t at = expansions_[size_t(source.batch)].first + source.instance * batch.rows * stride;
      sources.insert(sources.end(), {int32_t(at + row + (batch.energy ? column * stride : 0)),
                                     int32_t(at + column), stride, batch.energy ? -1 : batch.rows});
    }
    entries.insert(entries.end(), {int32_t(offsets[e]), int32_t(pattern.width(pattern.rows[e])),
                                   int32_t(pattern.first[size_t(pattern.rows[e])]),
                                   int32_t(pattern.first[size_t(pattern.columns[e])]), first,
                                   int32_t(sources.size() / kSourceWords)});
  }
  const auto table = [&](const std::vector<int32_t>& v, int64_t width) {
    return device_.upload(std::span<const int32_t>(v), {int64_t(v.size()) / width, width});
  };
  entry_of_ = device_.upload(entry_of);
  entries_ = table(entries, kEntryWords);
  sources_ = table(sources, kSourceWords);
}

void NormalValues::list_unknowns(const NormalEquations& equations) {
  const BlockPattern& pattern = equations.pattern();
  const std::vector<int64_t> offsets = pattern.offsets();
  std::vector<int32_t> diagonal(static_cast<size_t>(unknowns_));
  for (size_t e = 0; e < pattern.rows.size(); ++e) {
    if (pattern.rows[e] != pattern.columns[e]) continue;
    const int64_t width = pattern.width(pattern.rows[e]);
    for (int64_t i = 0; i < width; ++i)
      diagonal[size_t(pattern.first[size_t(pattern.rows[e])] + i)] = int32_t(offsets[e] + i * width + i);
  }
  for (int64_t b = 0; b < pattern.blocks(); ++b)
    for (int64_t i = 0; i < pattern.width(b); ++i)
      tangents_.push_back(int32_t(equations.columns()[size_t(b)] + i));
  diagonal_ = device_.upload(diagonal);
  tangent_ = device_.upload(tangents_);
}

void NormalValues::hold(const std::vector<uint8_t>& held) {
  std::vector<uint32_t> flags(size_t(unknowns_), 0);
  if (!held.empty())
    for (size_t k = 0; k < flags.size(); ++k) flags[k] = held[size_t(tangents_[k])];
  held_ = device_.upload(flags);
}

void NormalValues::assemble(Evaluator& evaluator, const Buffer& values) const {
  Evaluator::State& s = evaluator.internals();
  s.ensure_jacobian();
  for (size_t b = 0; b < expansions_.size(); ++b) {
    const Expansion& e = expansions_[b];
    if (e.instances * e.entries == 0) continue;
    // Without a stored number all entries are factors, which no buffer is read for.
    const Buffer& jacobian = s.batches[b].jacobian;
    const Buffer stored =
        jacobian && jacobian.elements() > 0 ? jacobian : device_.allocate(real_, {1, e.instances});
    device_.launch(choose(real_, expand_kernel<f32>, expand_kernel<f64>), {e.instances, e.entries},
                   int32_t(e.first), e.stored, e.factors, stored, dense_);
  }
  device_.launch(choose(real_, products_kernel<f32>, products_kernel<f64>), {entry_of_.elements()}, entry_of_,
                 entries_, sources_, held_, dense_, values);
}

void NormalValues::damp(double lambda, const DampingRange& damping, const Buffer& values,
                        const Buffer& gradient, const Buffer& added, const Buffer& x) const {
  const DampingRange range = real_ == Storage::f64 ? damping : damping.narrow();
  device_.launch(choose(real_, normal_damp_kernel<f32>, normal_damp_kernel<f64>), {unknowns_}, lambda,
                 range.low, range.high, diagonal_, tangent_, held_, values, gradient, added, x);
}

void NormalValues::scatter(const Buffer& x, const Buffer& step) const {
  device_.clear(step);
  device_.launch(choose(real_, step_kernel<f32>, step_kernel<f64>), {unknowns_}, tangent_, x, step);
}

}  // namespace lockstep::solve
