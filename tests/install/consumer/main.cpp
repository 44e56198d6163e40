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
    device.launch(axpy, Shape{1000}, dx, dy, 2.0f);
    const std::vector<float> result = device.download<float>(dy);
    for (size_t k = 0; k < result.size(); ++k) {
      if (result[k] != 2.0f * x[k] + 1.0f) {
        std::printf("%s: element %zu is %g\n", name, k, static_cast<double>(result[k]));
        return 1;
      }
    }
    std::printf("%s: right\n", device.info().name.c_str());
  }
  // Instances of the library's function templates.
  const Device cpu = Device::open("cpu,interp");
  const Buffer ones = cpu.upload(std::vector<f64>(1000, 1.0)), few = cpu.upload(std::vector<i32>{3, 1, 2});
  autodiff::Tape graph;
  const autodiff::Value a = graph.variable("a");
  const std::vector<double> square = autodiff::evaluate<double>(std::vector{a * a}, std::vector{3.0});
  if (primitives::sum<f64>(cpu, ones) != 1000 || primitives::min<i32>(cpu, few) != 1 ||
      primitives::max<i32>(cpu, few) != 3 || primitives::dot<f64>(cpu, ones, ones) != 1000 ||
      primitives::norm<f64>(cpu, ones) * primitives::norm<f64>(cpu, ones) < 999.9 || square[0] != 9) {
    std::printf("a reduction is wrong\n");
    return 1;
  }
  if (emit(axpy, "wgsl").find("@compute") == std::string::npos || emit(axpy, "ir").empty()) return 1;
  try {
    Device::open("no-such-device");
  } catch (const InputError& e) {
    std::printf("%s\n", e.what());
    return 0;
  }
  return 1;
}
