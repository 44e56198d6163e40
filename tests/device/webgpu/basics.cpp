// A kernel end to end, transfers, copies, graphs, events.
#include <cmath>
#include <numeric>

#include "adapter.hpp"

namespace lockstep {
namespace {

Kernel heat() {
  return kernel("heat.step", [](At<3> at, Grid<f32, 3> t, Out<f32, 3> next, Param<f32> a) {
    next[at] = fma(a, t[at.x(+1)] + t[at.x(-1)] - 2.0f * t[at], t[at]);
  });
}

std::vector<float> ramp(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = std::sin(float(i) * 0.37f) * 10.0f;
  return v;
}

TEST(WebgpuBasics, HeatStepEqualsTheLoop) {
  LOCKSTEP_OPEN_ADAPTER(device);
  const int64_t nz = 5, ny = 7, nx = 33;
  const auto t = ramp(size_t(nz * ny * nx));
  const Buffer in = device.upload(std::span<const float>(t), {nz, ny, nx}),
               out = device.allocate<f32>({nz, ny, nx});
  device.launch(heat(), {nz, ny, nx}, in, out, 0.1f);
  const auto result = device.download<float>(out);
  for (int64_t r = 0; r < nz * ny; ++r)
    for (int64_t x = 0; x < nx; ++x) {
      const float* row = t.data() + r * nx;
      const float l = row[std::max<int64_t>(x - 1, 0)], c = row[x], h = row[std::min(x + 1, nx - 1)];
      EXPECT_EQ(result[size_t(r * nx + x)], std::fma(0.1f, h + l - 2.0f * c, c)) << r << " " << x;
    }
}

}  // namespace
}  // namespace lockstep
