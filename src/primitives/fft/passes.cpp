// A transform as passes over memory: one lane a butterfly. The form for any length and device, and for single
// long lines.
#include <fmt/format.h>

#include "primitives/fft/lines.hpp"

namespace lockstep::primitives::fft {

namespace {

constexpr int kPassRadix = 8;

/// Pass number `pass` of a line: the first reads its source, the last writes its sink.
struct Pass {
  Stages stages;
  std::vector<int> radices;
  size_t pass;
  int radix() const { return radices[pass]; }
  int64_t before() const {
    int64_t points = 1;
    for (size_t p = 0; p < pass; ++p) points *= radices[p];
    return points;
  }
};

template <class T>
void butterfly(const Pass& pass, const LineAccess<T>& access, const Memory<T>& memory, const Val<T>& scale,
               const Val<i32>& k0, const Val<i32>& block) {
  const int n = int(pass.stages.length()), r = pass.radix(), before = int(pass.before()),
            power = int(pass.stages.power_of_two());
  const Range all{0, n - 1};
  const Val<i32> number = before == 1 ? block : block * before + k0;
  ComplexValues<T> y;
  for (int q = 0; q < r; ++q) y.push_back(access.load(number + q * (n / r), all));
  const bool first = before == 1;
  if (before < power) {
    power_of_two_stages<T>(y, first,
                           [&](int at, int of) { return memory.root(k0 + (of * before / 2 + at * before)); });
  } else if (r > 1) {
    int odd = 0;
    for (int64_t s = power; s < before; ++odd) s *= pass.stages.odd()[size_t(odd)];
    odd_stage<T>(y, first,
                 [&](int q) { return memory.root(k0 + int(pass.stages.odd_at(odd) + (q - 1) * before)); });
  }
  const Val<i32> to = block * (before * r) + k0;
  for (int q = 0; q < r; ++q) access.store(to + q * before, all, y[size_t(q)], scale);
}

template <class T>
Kernel pass_kernel(const Line& line, const Pass& pass, const Layout& layout) {
  const int before = int(pass.before()), blocks = int(pass.stages.length()) / (before * pass.radix());
  return line_kernel<T, At<3>>(
      fmt::format("pass{}of{}", pass.pass + 1, pass.radices.size()), line, layout,
      [&](const At<3>& at, const Memory<T>& memory, const Val<T>& scale, const Val<i32>&) {
        const Val<i32> x = at.x, y = at.y, z = at.z;
        const auto access = [&](const Val<i32>& other) {
          return LineAccess<T>(line, memory, z, other, pass.stages.real_at());
        };
        if (!line.rows)
          butterfly<T>(pass, access(x), memory, scale, y % before, y / before);
        else if (before == 1)
          butterfly<T>(pass, access(y), memory, scale, 0, x);
        else
          butterfly<T>(pass, access(y / blocks), memory, scale, x, y % blocks);
      });
}

/// The half spectrum out of the transform of pairs.
template <class T>
Kernel split_kernel(const Line& line, const Layout& layout) {
  const int n = int(line.points);
  const int64_t real_at = Stages(n).real_at();
  return line_kernel<T, At<3>>(
      "split", line, layout, [&](const At<3>& at, const Memory<T>& memory, const Val<T>&, const Val<i32>&) {
        const Val<i32> x = at.x, y = at.y, z = at.z;
        const Val<i32> k = line.rows ? x : y, other = line.rows ? y : x;
        const auto read = [&](const Val<i32>& j) {
          return line.rows ? memory.read_complex(z, other, j) : memory.read_complex(z, j, other);
        };
        const LineAccess<T> access(line, memory, z, other, real_at);
        access.store_pair(k, read(select(k == n, 0, k)), read(select(k == 0, 0, n - k)));
      });
}

Shape domain(const Lines& lines, const Pass& pass) {
  const int64_t before = pass.before(), butterflies = lines.line.points / pass.radix(),
                blocks = butterflies / before;
  if (!lines.line.rows) return {lines.batch, butterflies, lines.others};
  if (before == 1) return {lines.batch, lines.others, butterflies};
  return {lines.batch, lines.others * blocks, before};
}

template <class T>
std::vector<Step> steps_of(const Lines& lines) {
  const Line& whole = lines.line;
  const Stages stages(whole.points);
  std::vector<int> all = radices(stages, kPassRadix);
  if (all.empty()) all.push_back(1);
  const bool split = whole.sink == Sink::half_pairs;
  std::vector<Step> steps;
  for (size_t p = 0; p < all.size(); ++p) {
    Line line = whole;
    if (p > 0) {
      line.source = Source::complex;
      line.source_entries = whole.points;
      line.swap_in = false;
      line.factor_in = Factor::none;
    }
    if (p + 1 < all.size() || split) {
      line.sink = Sink::complex;
      line.sink_entries = whole.points;
      line.swap_out = line.scaled = false;
      line.factor_out = Factor::none;
    }
    const Pass pass{stages, all, p};
    steps.push_back({[=](const Layout& layout) { return pass_kernel<T>(line, pass, layout); },
                     {{domain(lines, pass)}},
                     lines.shape(line.source_entries),
                     lines.shape(line.sink_entries),
                     line.real_source(),
                     line.real_sink(),
                     lines.axis,
                     line.factor_in != Factor::none ? line.factor_in : line.factor_out});
  }
  if (split) {
    Line line = whole;
    line.source = Source::complex;
    line.source_entries = whole.points;
    const Shape to = lines.shape(whole.sink_entries);
    steps.push_back({[=](const Layout& layout) { return split_kernel<T>(line, layout); },
                     {{to}},
                     lines.shape(whole.points),
                     to,
                     false,
                     false,
                     lines.axis,
                     Factor::none});
  }
  return steps;
}
}  // namespace

template <class T>
std::vector<Step> pass_steps(const Lines& lines) {
  return steps_of<T>(lines);
}
template std::vector<Step> pass_steps<f32>(const Lines&);
template std::vector<Step> pass_steps<f64>(const Lines&);

}  // namespace lockstep::primitives::fft
