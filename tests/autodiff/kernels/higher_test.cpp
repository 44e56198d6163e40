// Derivatives of derivatives: tangents of tangents, and gradients of these, by closed forms.
#include "gradient_case.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

using testing::GradientCase;
using Doubles = std::vector<double>;

/// `x` times itself, as often as data says.
Kernel power_kernel() {
  return kernel("power", [](At<1> at, Grid<f64, 1> x, Grid<i32, 1> n, Out<f64, 1> y) {
    Var<f64> v = 1.0;
    for_(0, Val<i32>(n[at]), [&](auto) { v = v * x[at]; });
    y[at] = v;
  });
}
/// n (n - 1) … (n - order + 1) x^(n - order)
double falling_power(double x, int n, int order) {
  double value = 1;
  for (int k = 0; k < n; ++k) value *= k < order ? double(n - k) : x;
  return n < order ? 0 : value;
}

// Along 1 each time: the tangent of the tangent's tangent is the third derivative, its gradient the fourth.
TEST(HigherDerivatives, OfPowers) {
  const Doubles x{0.7, -1.3, 2.0, 0.4, -0.5};
  const std::vector<int32_t> n{5, 5, 3, 7, 2};
  Kernel k = power_kernel();
  std::string output = "b2";
  GradientCase c{k, {5}, {}, {}, {}};
  c.f64s("b0", x).put<int32_t>("b1", n).f64s("b2", Doubles(5));
  for (int order = 1; order <= 3; ++order) {
    k = tangent(k, {{"b0"}, {output}});
    const std::string ending = order == 1 ? "_tangent" : "_tangent" + std::to_string(order);
    output += ending;
    c.f64s("b0" + ending, Doubles(5, 1)).f64s(output, Doubles(5));
    c.kernel = k;
    for (const Device& device : testing::gradient_devices()) {
      Arguments list;
      std::map<std::string, Buffer> buffers;
      for (const auto& [name, array] : c.buffers) list.set(name, buffers[name] = device.upload(array));
      device.launch(k, {5}, list);
      const Doubles found = device.download<double>(buffers.at(output));
      for (size_t j = 0; j < 5; ++j)
        EXPECT_NEAR(found[j], falling_power(x[j], n[j], order), 1e-12 * 100) << order << " " << j;
    }
    c.which = {{"b0"}, {output}};
    const Doubles next = c.gradients(Device::open("cpu"), {{output, Doubles(5, 1)}}).at("b0");
    for (size_t j = 0; j < 5; ++j)
      EXPECT_NEAR(next[j], falling_power(x[j], n[j], order + 1), 1e-12 * 100) << order << " " << j;
  }
}

// All inputs, outputs and directions at once; forward against reverse mode of a third derivative.
TEST(HigherDerivatives, ModesAgreeOnATangentOfATangent) {
  const Kernel first =
      kernel("flow", [](At<1> at, Grid<f64, 1> x, InOut<f64, 1> state, Out<f64, 1> y, Param<f64> a) {
        Var<f64> v = x[at];
        for_(0, 3, [&](auto) { v = sin(a * v) + x.periodic()[at.x(1)] * x[at]; });
        state[at] = state[at] * exp(-(v * v));
        y[at] = v / (1.5 + state[at] * state[at]);
      });
  GradientCase c{tangent(tangent(first)), {4}, {}, {}, {}};
  double at = 0.2;
  for (const KernelParameter& p : c.kernel.parameters()) {
    Doubles values;
    for (int k = 0; k < 4; ++k) values.push_back(std::sin(at += 0.9));
    if (p.buffer)
      c.f64s(p.name, values);
    else
      c.numbers[p.name] = values[0];
  }
  c.expect_consistent(1e-6);
}

}  // namespace
}  // namespace lockstep
