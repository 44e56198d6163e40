// The plan of v2 by sums on the device: what the host reads is a few numbers for each ring of wavenumbers.
#include "flow/codec/plan.hpp"

#include <algorithm>
#include <cmath>

#include "flow/codec/kernels.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep::flow {

// Lanes take rows, and of each row the few columns that may lie on the ring; |k|^2 decides.
const Kernel& PlanKernels::rings() {
  static const Kernel made = kernel(
      "flow.codec.rings",
      [](Group<2> g, Grid<f32, 3> spectrum, Out<f32, 3> sums, Param<f32> unit_x, Param<f32> unit_y,
         Param<i32> nx, Param<f32> over_points) {
        const Val<i32> ring = g.id(0), which = g.id(1), ny = spectrum.size(0);
        const Val<f32> low = max(cast<f32>(ring) - cast<f32>(which) * 0.5f, 0.0f),
                       high = cast<f32>(ring + 1) - cast<f32>(which) * 0.5f, low2 = low * low,
                       high2 = high * high;
        Var<f32> sum = 0.0f, count = 0.0f;
        for_(g.lane(), ny, kCodecLanes, [&](Val<i32> row) {
          const Val<i32> iy = select(row * 2 >= ny + ny % 2, row - ny, row);
          const Val<f32> ky = unit_y * cast<f32>(iy), ky2 = ky * ky;
          if_(ky2 < high2, [&] {
            const Val<f32> from = sqrt(max(low2 - ky2, 0.0f)) / unit_x, to = sqrt(high2 - ky2) / unit_x;
            const Val<i32> begin = max(cast<i32>(from) - 1, 0),
                           end = min(cast<i32>(to) + 2, spectrum.size(1));
            for_(begin, end, 1, [&](Val<i32> ix) {
              const Val<f32> kx = unit_x * cast<f32>(ix), k2 = kx * kx + ky2;
              if_(k2 >= low2 && k2 < high2, [&] {
                const Val<f32> weight = select(ix == 0 || ix * 2 == nx, Val<f32>(1.0f), Val<f32>(2.0f));
                const Val<f32> re = spectrum(row, ix, 0) * over_points,
                               im = spectrum(row, ix, 1) * over_points;
                sum += weight * (re * re + im * im);
                count += 2.0f * weight;
              });
            });
          });
        });
        const Val<f32> sums_all = group_sum(Val<f32>(sum)), counts = group_sum(Val<f32>(count));
        if_(g.lane() == 0, [&] {
          sums(which, ring, 0) = sums_all;
          sums(which, ring, 1) = counts;
        });
      },
      {{kCodecLanes, 1, 1}, 0});
  return made;
}

int64_t ring_count(const BoxGrid& grid) {
  return int64_t(plane_wavenumber(grid, grid.ny / 2, grid.nx / 2) + 0.5) + 1;
}

void launch_rings(const Device& device, const BoxGrid& grid, const Buffer& spectrum, const Buffer& sums) {
  const double longest = std::max(grid.lx, grid.ly);
  device.launch(PlanKernels::rings(), {2, sums.shape()[1]}, spectrum.reshape({grid.ny, grid.nx / 2 + 1, 2}),
                sums, longest / grid.lx, longest / grid.ly, grid.nx, 1 / double(grid.points()));
}

RingSums ring_sums(const Device& device, const BoxGrid& grid, const Buffer& spectrum) {
  const int64_t rings = ring_count(grid);
  const Buffer sums = device.allocate<f32>({2, rings, 2});
  launch_rings(device, grid, spectrum, sums);
  const auto read = device.download<f32>(sums);
  RingSums all;
  for (int64_t r = 0; r < rings; ++r) {
    all.inside.push_back(double(read[size_t(2 * r)]));
    const double parts = double(read[size_t(2 * (rings + r) + 1)]);
    all.scales.push_back(parts > 0 ? std::sqrt(double(read[size_t(2 * (rings + r))]) / parts) : 0);
    all.squares += all.inside.back();
  }
  return all;
}

double cut_on_device(const Device& device, const CodecOptions& o, const Buffer& spectrum,
                     const RingSums& rings) {
  double total = 0, sum = 0;
  for (size_t r = 1; r < rings.inside.size(); ++r) total += rings.inside[r];
  size_t ring = 1;
  while (ring + 1 < rings.inside.size() && sum + rings.inside[ring] < o.share * total)
    sum += rings.inside[ring++];
  const std::vector<RingMode> modes = modes_of_ring(o.grid, int64_t(ring));
  if (modes.empty()) return std::max(1.0, double(ring));
  std::vector<int32_t> places;
  for (const RingMode& m : modes) places.insert(places.end(), {m.place, m.place + 1});
  const std::vector<float> gains(places.size(), float(1 / double(o.grid.points())));
  const auto count = int64_t(places.size());
  const Buffer parts = device.allocate<f32>({1, count});
  device.launch(LatentKernels::gather(), {1, count}, spectrum.reshape({1, spectrum.elements()}),
                device.upload(places), device.upload(gains), parts);
  const auto read = device.download<f32>(parts);
  double cut = 0;
  for (size_t m = 0; m < modes.size() && sum < o.share * total; ++m) {
    const double re = double(read[2 * m]), im = double(read[2 * m + 1]);
    cut = modes[m].wavenumber;
    sum += modes[m].weight * (re * re + im * im);
  }
  return std::max(cut, 1.0);
}

}  // namespace lockstep::flow
