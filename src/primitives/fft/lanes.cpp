// A transform as a line in each lane: the form for CPUs, where the lanes of a vector are neighbouring lines. A
// lane keeps its line in a local array (of all lanes together: vectors one behind the other) and does all
// stages in place.
#include <fmt/format.h>

#include "primitives/fft/lines.hpp"
#include "primitives/fft/plan.hpp"

namespace lockstep::primitives::fft {

namespace {

constexpr int kMostRadix = 16;
constexpr int64_t kMostPoints = 1 << 14;  // of a line: beyond, the vectors of a line leave the caches
constexpr int kPad = 16;                  // one vector is left out after so many

/// The values of a line in a lane, in padded places, so that the steps of a stage meet different sets of the
/// cache.
template <class T>
class LaneValues {
 public:
  explicit LaneValues(int64_t points) : array_(2 * (points + points / kPad + 1)) {}
  static Val<i32> place(const Val<i32>& i) { return i + (i >> 4); }
  Complex<T> load(const Val<i32>& place) const { return {array_[place * 2], array_[place * 2 + 1]}; }
  void store(const Val<i32>& place, const Complex<T>& a) const {
    array_[place * 2] = a.re;
    array_[place * 2 + 1] = a.im;
  }

 private:
  LocalArray<T> array_;
};

/// Calls body(place, element): place in the order before the first stage, first of radices[0] values whose
/// elements are `element` plus multiples of length / radices[0].
template <class Body>
void for_each_first(const std::vector<int>& radices, size_t digit, const Val<i32>& place, int place_step,
                    const Val<i32>& element, int element_step, const Body& body) {
  // Digits from the last stage's, which is the lowest of the element and the highest of the place.
  if (digit == 0) return body(place, element);
  const int r = radices[digit], step = place_step / r;
  for_(0, r, [&](Val<i32> q) {
    for_each_first(radices, digit - 1, place + q * step, step, element + q * element_step, element_step * r,
                   body);
  });
}

/// The place of `first` + at * before, at < radix, where `first` is a multiple of before * radix plus less than
/// `before`: mostly a constant away from that of `first`.
Val<i32> place_of(const Val<i32>& first, int before, int radix, int at) {
  const int offset = before * at;
  const auto divides = [](int a, int b) { return b % a == 0; };
  const bool known = divides(kPad, before) || (divides(before, kPad) && divides(kPad, before * radix)) ||
                     (before == 1 && divides(radix, kPad));
  return known ? first + (first >> 4) + (offset + offset / kPad) : (first + offset) + ((first + offset) >> 4);
}

template <class T>
void stage(const Stages& stages, int before, int radix, ComplexValues<T>& y, const Val<i32>& k0,
           const Memory<T>& memory) {
  const int power = int(stages.power_of_two());
  if (before < power)
    return power_of_two_stages<T>(
        y, before == 1, [&](int at, int of) { return memory.root(k0 + (of * before / 2 + at * before)); });
  int odd = 0;
  for (int s = power; s < before; ++odd) s *= stages.odd()[size_t(odd)];
  if (radix > 1)
    odd_stage<T>(y, before == 1,
                 [&](int q) { return memory.root(k0 + int(stages.odd_at(odd) + (q - 1) * before)); });
}

template <class T>
void transform_line(const Line& line, const Memory<T>& memory, const Val<T>& scale, const Val<i32>& batch,
                    const Val<i32>& other) {
  const int n = int(line.points);
  const Range all{0, n - 1};
  const Stages stages(n);
  std::vector<int> rs = radices(stages, kMostRadix);
  if (rs.empty()) rs.push_back(1);
  const LineAccess<T> access(line, memory, batch, other, stages.real_at());
  const LaneValues<T> values(n);
  const bool to_memory = line.sink != Sink::half_pairs && !line.rows;
  for_each_first(rs, rs.size() - 1, 0, n, 0, 1, [&](const Val<i32>& place, const Val<i32>& element) {
    ComplexValues<T> y;
    for (int q = 0; q < rs[0]; ++q) y.push_back(access.load(element + q * (n / rs[0]), all));
    stage<T>(stages, 1, rs[0], y, 0, memory);
    for (int q = 0; q < rs[0]; ++q) values.store(place_of(place, 1, rs[0], q), y[size_t(q)]);
  });
  int before = rs[0];
  for (size_t p = 1; p < rs.size(); ++p) {
    const int r = rs[p];
    const bool last = p + 1 == rs.size() && to_memory;
    for_(0, before, [&](Val<i32> k0) {
      for_(0, n / (before * r), [&](Val<i32> block) {
        const Val<i32> first = block * (before * r) + k0;
        ComplexValues<T> y;
        for (int q = 0; q < r; ++q) y.push_back(values.load(place_of(first, before, r, q)));
        stage<T>(stages, before, r, y, k0, memory);
        for (int q = 0; q < r; ++q) {
          if (last)
            access.store(first + q * before, all, y[size_t(q)], scale);
          else
            values.store(place_of(first, before, r, q), y[size_t(q)]);
        }
      });
    });
    before *= r;
  }
  const auto value = [&](const Val<i32>& j) { return values.load(LaneValues<T>::place(j)); };
  if (line.sink == Sink::half_pairs)
    for_(0, int(line.sink_entries), [&](Val<i32> k) {
      access.store_pair(k, value(select(k == n, 0, k)), value(select(k == 0, 0, n - k)));
    });
  else if (!to_memory || rs.size() == 1)
    for_(0, n, [&](Val<i32> j) { access.store(j, all, value(j), scale); });
}

template <class T>
std::vector<Step> steps_of_lanes(const Lines& lines, int width) {
  const Line line = lines.line;
  const auto kernel = [line](Layout layout) {
    // Parts of rows that lie apart are loaded as records, which are made of single loads.
    if (line.rows) layout.pairs_in = layout.pairs_out = false;
    return line_kernel<T, At<3>>(
        "lanes", line, layout,
        [&line](const At<3>& at, const Memory<T>& memory, const Val<T>& scale, const Val<i32>& first) {
          // One row of the domain is one vector of lines.
          const Val<i32> x = at.x, y = at.y, z = at.z;
          transform_line<T>(line, memory, scale, z, first + y * at.extent(0) + x);
        });
  };
  const int64_t whole = lines.others / width, rest = lines.others % width;
  Step step{kernel,
            {},
            lines.shape(line.source_entries),
            lines.shape(line.sink_entries),
            line.real_source(),
            line.real_sink(),
            lines.axis};
  if (whole > 0) step.parts.push_back({{lines.batch, whole, width}, 0});
  if (rest > 0) step.parts.push_back({{lines.batch, 1, rest}, whole * width});
  return {step};
}

}  // namespace

template <class T>
std::vector<Step> lane_steps(const Lines& lines, int width) {
  // A vector that is not filled costs as much as one that is: few lines are better cut along themselves.
  const bool served = Stages(lines.line.points).direct() && lines.line.points <= kMostPoints &&
                      (lines.others >= width / 2 || lines.line.points <= 256);
  return served ? steps_of_lanes<T>(lines, width) : std::vector<Step>();
}
template std::vector<Step> lane_steps<f32>(const Lines&, int);
template std::vector<Step> lane_steps<f64>(const Lines&, int);

}  // namespace lockstep::primitives::fft
