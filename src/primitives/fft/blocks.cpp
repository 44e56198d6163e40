// A transform as lines in groups of lanes (block_fft.hpp): the form for GPUs. One launch an axis; memory is
// read and written once.
#include <fmt/format.h>

#include <numeric>

#include "primitives/fft/block_fft.hpp"
#include "primitives/fft/lines.hpp"
#include "primitives/flat.hpp"

namespace lockstep::primitives::fft {

namespace {

constexpr int kGroupLanes = 256;  // of a group, where the lines are short enough
constexpr int kGroups = 128;      // minimum target
constexpr int kLeastLanes = 64;   // of a group, where there are lines enough

/// How lines of a length are spread over lanes.
struct Spread {
  int points = 0;  // of a lane; 0: the form does not serve this length
  int lanes = 0;   // of a line
  int lines = 1;   // of a group
  int planes = 2;
  std::vector<int> radices;
};

Spread spread(const Lines& lines, const Limits& limits, int size_of_value) {
  Spread s;
  const Line& line = lines.line;
  const Stages stages(line.points);
  if (!stages.direct() || line.points > 16384) return {};
  s.radices = radices(stages, 16);
  s.points = 1;
  for (const int r : s.radices) s.points = std::lcm(s.points, r);
  if (s.points > (size_of_value == 4 ? 64 : 48) || line.points % s.points != 0) return {};
  s.lanes = int(line.points) / s.points;
  // Long columns: two butterflies a lane leave room for more columns side by side.
  if (!line.rows && s.lanes > 128 && s.points <= 16) {
    s.lanes /= 2;
    s.points *= 2;
  }
  const int wanted = line.rows ? 1 : 16;
  s.lines = std::max(kGroupLanes / s.lanes, std::min(wanted, std::max(512 / s.lanes, 1)));
  while (s.lines > 1 && s.lines / 2 >= lines.others) s.lines /= 2;
  // Enough groups to fill a large GPU, and 32 bytes of neighbouring columns.
  const int least = line.rows ? 1 : 4;
  const auto groups = [&] { return lines.batch * divide_up(lines.others, s.lines); };
  while (s.lines > least && s.lanes * s.lines > kLeastLanes && groups() < kGroups) s.lines /= 2;
  while (s.lines > 1 && s.lanes * s.lines > limits.group_lanes) s.lines /= 2;
  const BlockFft fft(int(line.points), s.lanes, s.radices);
  const auto bytes = [&] { return int64_t(fft.padded()) * s.lines * s.planes * size_of_value; };
  const int64_t comfortable = std::min<int64_t>(limits.shared_bytes, 96 << 10);
  while (s.lines > least && bytes() > comfortable) s.lines /= 2;
  if (bytes() > comfortable && line.sink != Sink::half_pairs) s.planes = 1;
  while (s.lines > 1 && bytes() > limits.shared_bytes) s.lines /= 2;
  if (bytes() > limits.shared_bytes || s.lanes * s.lines > limits.group_lanes) return {};
  return s;
}

/// Z to shared memory, so that lanes find Z[n - k]; then the half spectrum.
template <class T>
void store_half(const Line& line, const BlockFft& fft, const LineAccess<T>& access, FftExchange<T>& exchange,
                const ComplexValues<T>& x, const Val<i32>& t, const Val<bool>& mine) {
  const int n = fft.length();
  barrier();
  for (int j = 0; j < fft.points(); ++j) {
    const Val<i32> at = exchange.address(t, fft.lanes() * j, false);
    exchange.array()[at] = x[size_t(j)].re;
    exchange.array()[at + exchange.plane()] = x[size_t(j)].im;
  }
  barrier();
  const auto value = [&](const Val<i32>& k) {
    const Val<i32> at = exchange.address(k);
    return Complex<T>{exchange.array()[at], exchange.array()[at + exchange.plane()]};
  };
  for (int j = 0; j < fft.points(); ++j) {
    if (fft.lanes() * j >= line.sink_entries) break;
    const Val<i32> k = t + fft.lanes() * j;
    Val<bool> wanted = mine;
    if (fft.lanes() * (j + 1) > line.sink_entries) wanted = wanted && k < int(line.sink_entries);
    if_(wanted,
        [&] { access.store_pair(k, x[size_t(j)], value(j == 0 ? select(k == 0, 0, n - k) : n - k)); });
  }
  if (line.sink_entries == n + 1) if_(mine && t == 0, [&] { access.store_pair(n, x[0], x[0]); });
}

template <class T>
void transform_lines(const Line& line, const Spread& s, const Group<3>& g, const Memory<T>& memory,
                     const Val<T>& scale, const Val<i32>& others) {
  const BlockFft fft(int(line.points), s.lanes, s.radices);
  const Val<i32> lane = g.lane();
  // Neighbouring lanes meet neighbouring elements: of the line, or of the lines side by side.
  const Val<i32> t = line.rows ? lane % s.lanes : lane / s.lines,
                 l = line.rows ? lane / s.lanes : lane % s.lines;
  const Val<i32> number = g.id(0) * s.lines + l;
  const Val<bool> mine = number < others;
  using Exchange = FftExchange<T>;
  Exchange exchange(fft, s.lines, line.rows ? Exchange::Lines::apart : Exchange::Lines::interleaved, 1,
                    s.planes);
  exchange.place(l);
  const LineAccess<T> access(line, memory, g.id(2), min(number, others - 1), fft.stages().real_at());
  const auto range = [&](int j) { return Range{s.lanes * j, s.lanes * (j + 1) - 1}; };
  ComplexValues<T> x;
  for (int j = 0; j < fft.points(); ++j) x.push_back(access.load(t + s.lanes * j, range(j)));
  block_fft<T>(fft, FftDirection::forward, x, t, exchange, memory.root);
  if (line.sink == Sink::half_pairs) return store_half<T>(line, fft, access, exchange, x, t, mine);
  if_(mine, [&] {
    for (int j = 0; j < fft.points(); ++j) access.store(t + s.lanes * j, range(j), x[size_t(j)], scale);
  });
}

template <class T>
std::vector<Step> steps_of_blocks(const Lines& lines, const Limits& limits) {
  const Spread s = spread(lines, limits, sizeof(T));
  if (s.points == 0) return {};
  const Line line = lines.line;
  KernelOptions options;
  options.group = {s.lanes * s.lines, 1, 1};
  const auto kernel = [line, s, options](const Layout& layout) {
    return line_kernel<T, Group<3>>(
        fmt::format("block{}{}", s.lines, s.planes == 1 ? "half" : ""), line, layout,
        [&](const Group<3>& g, const Memory<T>& memory, const Val<T>& scale, const Val<i32>& others) {
          transform_lines<T>(line, s, g, memory, scale, others);
        },
        options);
  };
  return {Step{kernel,
               {{{lines.batch, 1, divide_up(lines.others, s.lines)}, lines.others}},
               lines.shape(line.source_entries),
               lines.shape(line.sink_entries),
               line.real_source(),
               line.real_sink(),
               lines.axis}};
}

}  // namespace

template <class T>
std::vector<Step> block_steps(const Lines& lines, const Limits& limits) {
  return steps_of_blocks<T>(lines, limits);
}
template std::vector<Step> block_steps<f32>(const Lines&, const Limits&);
template std::vector<Step> block_steps<f64>(const Lines&, const Limits&);

}  // namespace lockstep::primitives::fft
