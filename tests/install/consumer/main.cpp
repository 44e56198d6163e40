// Runs a kernel of its own on the interpreter and on the first device, with the installed library alone.
#include <cstdio>
#include <numeric>
#include <vector>

#include "lockstep/lockstep.hpp"

int main() {
  using namespace lockstep;
  const auto axpy = kernel("consumer.axpy", [](At<1> at, Grid<f32, 1> x, InOut<f32, 1> y, Param<f32> a) {
    y[at] = fma(a, x[at], y[at]);
  });
  std::vector<float> x(1000), y(1000, 1.0f);
  std::iota(x.begin(), x.end(), 0.0f);
  for (const char* name : {"interp", "auto"}) {
    const Device device = Device::open(name);
    const Buffer dx = device.upload(x), dy = device.upload(y);
    device.launch(axpy, Extent{1000}, dx, dy, 2.0f);
    const std::vector<float> result = device.download<float>(dy);
    for (size_t k = 0; k < result.size(); ++k) {
      if (result[k] != 2.0f * x[k] + 1.0f) {
        std::printf("%s: element %zu is %g\n", name, k, static_cast<double>(result[k]));
        return 1;
      }
    }
    std::printf("%s: right\n", device.info().name.c_str());
  }
  try {
    Device::open("no-such-device");
  } catch (const InputError& e) {
    std::printf("%s\n", e.what());
    return 0;
  }
  return 1;
}
