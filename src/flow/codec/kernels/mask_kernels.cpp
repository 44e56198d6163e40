// The ternary mask. Two bit planes, positive and negative, of 32 points a word: a sweep adds the nine bits of a
// neighbourhood by full adders on whole words.
#include "flow/codec/kernels/kernels.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep::flow {

namespace {

using Word = Val<u32>;

/// Two bits of a sum.
struct BitSum {
  Word one, two;
};
BitSum full_add(const Word& a, const Word& b, const Word& c) {
  const Word half = a ^ b;
  return {half ^ c, (a & b) | (half & c)};
}

/// Number of set bits among nine, as four words of bits.
struct BitCount {
  Word one, two, four, eight;
};
BitCount add_nine(const BitSum& a, const BitSum& b, const BitSum& c) {
  const BitSum ones = full_add(a.one, b.one, c.one), twos = full_add(a.two, b.two, c.two);
  // ones.two and twos.one count twos, twos.two fours.
  const Word carry = ones.two & twos.one;
  return {ones.one, ones.two ^ twos.one, twos.two ^ carry, twos.two & carry};
}
/// Bits where a > b.
Word greater(const BitCount& a, const BitCount& b) {
  const auto step = [](const Word& x, const Word& y, const Word& lower) {
    return (x & ~y) | (~(x ^ y) & lower);
  };
  return step(a.eight, b.eight, step(a.four, b.four, step(a.two, b.two, a.one & ~b.one)));
}

}  // namespace

const Kernel& MaskKernels::rows(bool periodic) {
  static const auto make = [](bool wraps) {
    return kernel(wraps ? "flow.codec.rows.periodic" : "flow.codec.rows",
                  [=](At<3> at, Grid<f32, 3> w, Out<f32, 3> sums, Param<i32> half) {
                    const auto rule = w.with(wraps ? Boundary::periodic : Boundary::zero);
                    const Val<i32> m = at.z, y = at.y, x = at.x;
                    Var<f32> sum = 0.0f;
                    for_(-half, half + 1, [&](Val<i32> d) { sum += rule(m, y, x + d); });
                    sums(m, y, x) = sum;
                  });
  };
  static const Kernel zero = make(false), wrapped = make(true);
  return periodic ? wrapped : zero;
}

const Kernel& MaskKernels::residual(bool periodic) {
  static const auto make = [](bool wraps) {
    return kernel(wraps ? "flow.codec.residual.periodic" : "flow.codec.residual",
                  [=](At<3> at, Grid<f32, 3> w, Grid<f32, 3> sums, Out<f32, 3> r, Param<i32> half) {
                    const auto rule = sums.with(wraps ? Boundary::periodic : Boundary::zero);
                    const Val<i32> m = at.z, y = at.y, x = at.x;
                    Var<f32> sum = 0.0f;
                    for_(-half, half + 1, [&](Val<i32> d) { sum += rule(m, y + d, x); });
                    const Val<i32> side = half * 2 + 1;
                    r(m, y, x) = w(m, y, x) - sum / cast<f32>(side * side);
                  });
  };
  static const Kernel zero = make(false), wrapped = make(true);
  return periodic ? wrapped : zero;
}

const Kernel& MaskKernels::peaks() {
  static const Kernel made = kernel("flow.codec.peaks",
                                    [](Group<2> g, Grid<f32, 2> r, Out<f32, 2> peaks) {
                                      const Val<i32> m = g.id(1), points = r.size(1);
                                      Var<f32> most = 0.0f;
                                      for_(0, int(kPointChunk) / kCodecLanes, [&](Val<i32> k) {
                                        const Val<i32> at =
                                            g.id(0) * int(kPointChunk) + k * kCodecLanes + g.lane();
                                        if_(at < points, [&] { most = max(Val<f32>(most), abs(r(m, at))); });
                                      });
                                      const Val<f32> all = group_max(Val<f32>(most));
                                      if_(g.lane() == 0, [&] { peaks(m, g.id(0)) = all; });
                                    },
                                    {{kCodecLanes, 1, 1}, 0});
  return made;
}

const Kernel& MaskKernels::peak() {
  static const Kernel made = kernel("flow.codec.peak",
                                    [](Group<1> g, Grid<f32, 2> peaks, Out<f32, 1> peak) {
                                      Var<f32> most = 0.0f;
                                      for_(g.lane(), peaks.size(1), kCodecLanes,
                                           [&](Val<i32> k) { most = max(Val<f32>(most), peaks(g.id(), k)); });
                                      const Val<f32> all = group_max(Val<f32>(most));
                                      if_(g.lane() == 0, [&] { peak[g.id()] = all; });
                                    },
                                    {{kCodecLanes, 1, 1}, 0});
  return made;
}

const Kernel& MaskKernels::ternary() {
  static const Kernel made = kernel("flow.codec.ternary", [](At<3> at, Grid<f32, 3> r, Grid<f32, 1> peak,
                                                             Out<u32, 4> bits, Param<f32> threshold) {
    const Val<i32> m = at.z, y = at.y, word = at.x;
    Var<u32> plus = 0u, minus = 0u;
    const Val<f32> top = peak[m];
    // A field without a residual has no signs.
    if_(top > 0.0f, [&] {
      for_(0, 32, [&](Val<i32> k) {
        const Val<i32> x = word * 32 + k;
        if_(x < r.size(2), [&] {
          const Val<f32> share = r(m, y, x) / top;
          const Val<u32> bit = Val<u32>(1u) << cast<u32>(k);
          plus |= select(share > threshold, bit, Val<u32>(0u));
          minus |= select(share < -threshold, bit, Val<u32>(0u));
        });
      });
    });
    bits(m, 0, y, word) = plus;
    bits(m, 1, y, word) = minus;
  });
  return made;
}

const Kernel& MaskKernels::sweep() {
  static const Kernel made =
      kernel("flow.codec.sweep", [](At<3> at, Grid<u32, 4> from, Out<u32, 4> to, Param<i32> nx) {
        const Val<i32> m = at.z, y = at.y, word = at.x, rows = from.size(2), words = from.size(3);
        const Val<i32> used = select(word == words - 1, nx - word * 32, Val<i32>(32));  // points of this word
        const Val<u32> last = cast<u32>(used - 1);
        const Val<i32> left = select(word == 0, words - 1, word - 1),
                       right = select(word == words - 1, Val<i32>(0), word + 1);
        const Val<u32> left_top = cast<u32>(select(word == 0, nx - left * 32 - 1, Val<i32>(31)));
        const auto line = [&](int plane, const Val<i32>& row) {
          const Word here = from(m, plane, row, word);
          const Word before = (here << 1u) | ((from(m, plane, row, left) >> left_top) & 1u);
          const Word after = (here >> 1u) | ((from(m, plane, row, right) & 1u) << last);
          return full_add(before, here, after);
        };
        const Val<i32> above = select(y == 0, rows - 1, y - 1),
                       below = select(y == rows - 1, Val<i32>(0), y + 1);
        const auto count = [&](int plane) {
          return add_nine(line(plane, above), line(plane, y), line(plane, below));
        };
        const BitCount plus = count(0), minus = count(1);
        const Word inside = Val<u32>(0xFFFFFFFFu) >> (Val<u32>(31u) - last);
        to(m, 0, y, word) = greater(plus, minus) & inside;
        to(m, 1, y, word) = greater(minus, plus) & inside;
      });
  return made;
}

const Kernel& MaskKernels::support() {
  static const Kernel made = kernel(
      "flow.codec.support",
      [](Group<1> g, Grid<u32, 3> bits, Out<f32, 1> support, Param<f32> points) {
        Var<i32> count = 0;
        for_(g.lane(), bits.size(2), kCodecLanes,
             [&](Val<i32> k) { count += cast<i32>(popcount(bits(g.id(), 0, k) | bits(g.id(), 1, k))); });
        const Val<i32> all = group_sum(Val<i32>(count));
        if_(g.lane() == 0, [&] { support[g.id()] = cast<f32>(all) / points; });
      },
      {{kCodecLanes, 1, 1}, 0});
  return made;
}

}  // namespace lockstep::flow
