// The heat equation on a 3-D grid: one kernel, one step after another, on any available device.
//
//   hello_kernel [device]        device: auto (default), cpu, cuda, webgpu, interp
#include <cstdio>

#include "lockstep/context.hpp"

using namespace lockstep;

int main(int argc, char** argv) try {
  const Kernel heat = kernel("heat.step", [](At<3> at, Grid<f32, 3> t, Out<f32, 3> next, Param<f32> a) {
    const auto laplacian =
        t[at.x(+1)] + t[at.x(-1)] + t[at.y(+1)] + t[at.y(-1)] + t[at.z(+1)] + t[at.z(-1)] - 6.0f * t[at];
    next[at] = fma(a, laplacian, t[at]);
  });

  // A hot cube in the middle of a cold block. Reads outside the grid take the nearest cell inside: no heat
  // leaves.
  const Shape shape{40, 50, 60};
  std::vector<f32> start(size_t(shape.elements()), 0.0f);
  for (int z = 15; z < 25; ++z)
    for (int y = 20; y < 30; ++y)
      for (int x = 25; x < 35; ++x) start[size_t((z * shape[1] + y) * shape[2] + x)] = 100.0f;

  const Device device = Device::open(argc > 1 ? argv[1] : "auto");
  Buffer now = device.upload(std::span<const f32>(start), shape), next = device.allocate<f32>(shape);
  for (int step = 0; step < 200; ++step) {
    device.launch(heat, shape, now, next, 0.1f);
    std::swap(now, next);
  }

  double total = 0;
  float hottest = 0;
  for (float t : device.download<f32>(now)) {
    total += t;
    hottest = std::max(hottest, t);
  }
  std::printf("%s (%s)\nafter 200 steps: hottest cell %.4f, heat %.1f (at the start 100000)\n",
              device.info().name.c_str(), device.info().description.c_str(), hottest, total);
  return std::abs(total - 100000) < 10 && hottest > 10 && hottest < 100 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "hello_kernel: %s\n", error.what());
  return 2;
}
