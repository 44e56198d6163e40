// A reduction of one's own: the largest absolute difference of two vectors, by shared memory and a tree per
// group. The tree depends on the size only, so every device gives the same bits.
#include <cmath>
#include <cstdio>

#include "lockstep/device.hpp"

using namespace lockstep;

int main() try {
  constexpr int kLanes = 256;
  const Kernel largest_difference =
      kernel("example.largest_difference",
             [](Group<1> g, Grid<f32, 1> a, Grid<f32, 1> b, Out<f32, 1> partial) {
               // Each lane strides over the vectors, then the group's tree joins the lanes.
               Var<f32> worst = 0.0f;
               Var<i32> n = g.global();
               while_([&] { return n < a.size(0); },
                      [&] {
                        worst = max(worst, abs(a[n] - b[n]));
                        n += g.count() * g.size();
                      });
               const Val<f32> of_group = group_max(worst);
               if_(g.lane() == 0, [&] { partial[g.id()] = of_group; });
             },
             {.group = {kLanes}});

  const int64_t size = 1'000'003, groups = 64;
  std::vector<f32> a(size), b(size);
  float expected = 0;
  for (int64_t n = 0; n < size; ++n) {
    a[n] = float(n % 1000) * 0.25f;
    b[n] = a[n] + float(n % 777) * 1e-3f;
    expected = std::max(expected, std::abs(a[n] - b[n]));
  }
  const Device device = Device::open("auto");
  const Buffer partial = device.allocate<f32>({groups});
  device.launch(largest_difference, {groups}, device.upload(a), device.upload(b), partial);
  float found = 0;
  for (float p : device.download<f32>(partial)) found = std::max(found, p);
  std::printf("%s: largest difference %.9g, expected %.9g\n", device.info().name.c_str(), found, expected);
  return found == expected ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "own_reduction: %s\n", error.what());
  return 2;
}
