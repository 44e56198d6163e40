// Latents from spectra and back; energies of bands; random fields of a given energy.
#include <cmath>

#include "flow/codec/kernels/kernels.hpp"
#include "flow/les/mode.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep::flow {

const Kernel& LatentKernels::gather() {
  static const Kernel made =
      kernel("flow.codec.gather",
             [](At<2> at, Grid<f32, 2> spectrum, Grid<i32, 1> place, Grid<f32, 1> gain, Out<f32, 2> latent) {
               const Val<i32> m = at.y, j = at.x;
               latent(m, j) = spectrum(m, place[j]) * gain[j];
             });
  return made;
}

// A mode is half the sum of its own number and of its mirror's, conjugated: the real part of the inverse transform
// of what a latent says about both. Sources are 1 + the place in the latent, negative for the negative, 0 for none.
const Kernel& LatentKernels::scatter() {
  static const Kernel made = kernel(
      "flow.codec.scatter",
      [](At<3> at, Grid<f32, 2> latent, Grid<i32, 3> source, Grid<f32, 1> scale, Out<f32, 4> spectrum) {
        const Val<i32> m = at.z, row = at.y, column = at.x;
        const auto value = [&](int which) {
          const Val<i32> from = source(row, column, which), j = max(abs(from) - 1, 0);
          const Val<f32> v = latent(m, j) * scale[j];
          return select(from == 0, Val<f32>(0.0f), select(from < 0, -v, v));
        };
        spectrum(m, row, column, 0) = 0.5f * (value(0) + value(1));
        spectrum(m, row, column, 1) = 0.5f * (value(2) + value(3));
      });
  return made;
}

const Kernel& BandKernels::sums() {
  static const Kernel made = kernel(
      "flow.codec.bands",
      [](Group<2> g, Grid<f32, 3> spectrum, Grid<i32, 2> chunks, Grid<i32, 1> order, Grid<f32, 1> weight,
         Out<f32, 2> sums, Param<f32> over_points) {
        const Val<i32> chunk = g.id(0), m = g.id(1), begin = chunks(chunk, 0), end = chunks(chunk, 1);
        Var<f32> sum = 0.0f;
        for_(begin + g.lane(), end, kCodecLanes, [&](Val<i32> k) {
          const Val<i32> mode = order[k];
          const Val<f32> re = spectrum(m, mode, 0) * over_points, im = spectrum(m, mode, 1) * over_points;
          sum += weight[mode] * (re * re + im * im);
        });
        const Val<f32> all = group_sum(Val<f32>(sum));
        if_(g.lane() == 0, [&] { sums(m, chunk) = all; });
      },
      {{kCodecLanes, 1, 1}, 0});
  return made;
}

namespace {

/// The sum of a band's chunks, in all lanes.
Val<f32> sum_of_band(const Group<2>& g, const Grid<f32, 2>& sums, const Grid<i32, 1>& first) {
  const Val<i32> band = g.id(0), m = g.id(1);
  Var<f32> sum = 0.0f;
  for_(first[band] + g.lane(), first[band + 1], kCodecLanes, [&](Val<i32> k) { sum += sums(m, k); });
  return group_sum(Val<f32>(sum));
}

}  // namespace

const Kernel& BandKernels::classic() {
  static const Kernel made =
      kernel("flow.codec.numbers",
             [](Group<2> g, Grid<f32, 2> sums, Grid<i32, 1> first, Grid<f32, 1> members, Grid<f32, 1> support,
                Out<f32, 2> numbers, Param<f32> anchors) {
               const Val<i32> band = g.id(0), m = g.id(1);
               const Val<f32> sum = sum_of_band(g, sums, first), count = members[band];
               if_(g.lane() == 0, [&] {
                 numbers(m, band + 1) = select(count > 0.0f, sum / max(count, 1.0f), Val<f32>(0.0f));
                 if_(band == 0, [&] {
                   numbers(m, 0) = support[m];
                   numbers(m, 3) = anchors;
                 });
               });
             },
             {{kCodecLanes, 1, 1}, 0});
  return made;
}

const Kernel& BandKernels::amplitudes() {
  static const Kernel made = kernel(
      "flow.codec.amplitudes",
      [](Group<2> g, Grid<f32, 2> sums, Grid<i32, 1> first, Grid<f32, 1> gain, Out<f32, 2> amplitudes) {
        const Val<f32> sum = sum_of_band(g, sums, first);
        if_(g.lane() == 0, [&] { amplitudes(g.id(1), g.id(0)) = sqrt(sum) * gain[g.id(0)]; });
      },
      {{kCodecLanes, 1, 1}, 0});
  return made;
}

// A rollout's energy may be negative: it then counts as none.
const Kernel& BandKernels::classic_energies() {
  static const Kernel made = kernel(
      "flow.codec.energies", [](At<2> at, Grid<f32, 2> numbers, Grid<f32, 1> members, Out<f32, 2> energies) {
        const Val<i32> m = at.y, band = at.x;
        energies(m, band) = max(numbers(m, band + 1), 0.0f) * members[band];
      });
  return made;
}

const Kernel& BandKernels::v2_energies() {
  static const Kernel made = kernel(
      "flow.codec.squares", [](At<2> at, Grid<f32, 2> amplitudes, Grid<f32, 1> scale, Out<f32, 2> energies) {
        const Val<i32> m = at.y, band = at.x;
        const Val<f32> a = max(amplitudes(m, band), 0.0f) * scale[band];
        energies(m, band) = a * a;
      });
  return made;
}

// Fields are one a band (classic) or one of all bands (v2): fields = energies.size(1) or 1.
const Kernel& BandKernels::noise() {
  static const Kernel made =
      kernel("flow.codec.noise", [](At<3> at, Grid<f32, 2> energies, Grid<i32, 2> band, Grid<f32, 1> members,
                                    Out<f32, 4> spectrum, Param<i32> fields, Param<i32> nx, Param<u32> key,
                                    Param<i32> number) {
        const Val<i32> m = at.z / fields, field = at.z % fields, row = at.y, column = at.x, ny = at.extent(1);
        const Val<i32> code = band(row, column), own = (code & 255) - 1, safe = max(own, 0);
        const Val<bool> active = own >= 0 && (fields == 1 || own == field);
        const Val<f32> size = sqrt(energies(m, safe) / max(members[safe], 1.0f)) * 0.5f;
        const Val<u32> turn = cast<u32>(number + m);
        const auto phase = [&](const Val<i32>& y, const Val<i32>& x) {
          const Val<u32> counter = mode_counter<Val<u32>>(cast<u32>(x), cast<u32>(y));
          const Val<u32> bits = philox<Val<u32>>(counter, turn, key, upper_half);
          return sincos(cast<f32>(bits >> 8u) * f32(2 * kPi / 16777216.0));
        };
        const SinCos<f32> here = phase(row, column), there = phase((ny - row) % ny, (nx - column) % nx);
        const Val<f32> self = select((code & 256) != 0 && active, size, Val<f32>(0.0f)),
                       other = select((code & 512) != 0 && active, size, Val<f32>(0.0f));
        spectrum(at.z, row, column, 0) = self * here.cos + other * there.cos;
        spectrum(at.z, row, column, 1) = self * here.sin - other * there.sin;
      });
  return made;
}

namespace {

Val<f32> masked_value(const Grid<f32, 3>& r, const Grid<u32, 4>& bits, const Val<i32>& of, const Val<i32>& m,
                      const Val<i32>& y, const Val<i32>& x) {
  const Val<u32> word = bits(m, 0, y, x / 32) | bits(m, 1, y, x / 32);
  return select(((word >> cast<u32>(x % 32)) & 1u) != 0u, r(of, y, x), Val<f32>(0.0f));
}

}  // namespace

const Kernel& BandKernels::masked() {
  static const Kernel made =
      kernel("flow.codec.masked",
             [](Group<2> g, Grid<f32, 3> r, Grid<u32, 4> bits, Out<f32, 2> sums, Param<i32> fields) {
               const Val<i32> of = g.id(1), nx = r.size(2), points = r.size(1) * nx;
               Var<f32> sum = 0.0f;
               for_(0, int(kPointChunk) / kCodecLanes, [&](Val<i32> k) {
                 const Val<i32> at = g.id(0) * int(kPointChunk) + k * kCodecLanes + g.lane();
                 if_(at < points, [&] {
                   const Val<f32> v = masked_value(r, bits, of, of / fields, at / nx, at % nx);
                   sum += v * v;
                 });
               });
               const Val<f32> all = group_sum(Val<f32>(sum));
               if_(g.lane() == 0, [&] { sums(of, g.id(0)) = all; });
             },
             {{kCodecLanes, 1, 1}, 0});
  return made;
}

const Kernel& BandKernels::factors() {
  static const Kernel made = kernel(
      "flow.codec.factors",
      [](Group<1> g, Grid<f32, 2> sums, Grid<f32, 2> energies, Out<f32, 1> factors, Param<i32> fields,
         Param<f32> points) {
        const Val<i32> of = g.id(), m = of / fields, bands = energies.size(1);
        Var<f32> sum = 0.0f, energy = 0.0f;
        for_(g.lane(), sums.size(1), kCodecLanes, [&](Val<i32> k) { sum += sums(of, k); });
        const Val<f32> mean = group_sum(Val<f32>(sum)) / points;
        for_(0, bands,
             [&](Val<i32> b) { if_(fields == 1 || b == of % fields, [&] { energy += energies(m, b); }); });
        if_(g.lane() == 0,
            [&] { factors[of] = select(mean > 0.0f, sqrt(Val<f32>(energy) / mean), Val<f32>(0.0f)); });
      },
      {{kCodecLanes, 1, 1}, 0});
  return made;
}

const Kernel& BandKernels::add() {
  static const Kernel made =
      kernel("flow.codec.add", [](At<3> at, Grid<f32, 3> r, Grid<u32, 4> bits, Grid<f32, 1> factors,
                                  InOut<f32, 3> w, Param<i32> fields) {
        const Val<i32> m = at.z, y = at.y, x = at.x;
        Var<f32> value = w(m, y, x);
        for_(0, fields, [&](Val<i32> f) {
          const Val<i32> of = m * fields + f;
          value += masked_value(r, bits, of, m, y, x) * factors[of];
        });
        w(m, y, x) = value;
      });
  return made;
}

}  // namespace lockstep::flow
