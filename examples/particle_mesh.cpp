// Finds how particles were displaced from the density that they leave on a mesh. One kernel interpolates a mesh at the
// particles. Its gradient by the mesh, for seeds that are the masses, is the transfer to the mesh; its gradient by the
// positions, for a mesh of slopes, is that of a loss of the density. Exact sums give both the same bits on every device.
#include <array>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "lockstep/differentiate.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/optimize.hpp"
#include "lockstep/primitives.hpp"

using namespace lockstep;

namespace {
constexpr int64_t kSize = 24, kCount = 4 * kSize * kSize;  // cells a side; four particles in a cell

/// `wave`: amplitude and phase along x and along y.
Kernel displace() {
  return kernel("example.displace", [](At<1> at, Grid<f64, 2> rest, Grid<f64, 1> wave, Out<f64, 2> x) {
    for (int axis = 0; axis < 2; ++axis) {
      const Val<f64> q = rest(at.x, axis);
      x(at.x, axis) = q + wave[2 * axis] * sin(q * (2 * std::numbers::pi / kSize) + wave[2 * axis + 1]);
    }
  });
}
/// Quadratic splines on a periodic mesh; positions x, y in cells.
Kernel interpolate() {
  return kernel("example.interpolate", [](At<1> at, Grid<f64, 2> mesh, Grid<f64, 2> x, Out<f64, 1> value) {
    std::vector<Val<i32>> cell;
    std::vector<std::array<Val<f64>, 3>> weight;
    for (int axis = 0; axis < 2; ++axis) {
      const Val<f64> nearest = rint(x(at.x, axis)), d = x(at.x, axis) - nearest;
      const Val<f64> left = 0.5 - d, right = 0.5 + d;
      cell.push_back(cast<i32>(nearest));
      weight.push_back({0.5 * left * left, 0.75 - d * d, 0.5 * right * right});
    }
    Val<f64> sum = 0.0;
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i)
        sum = sum + weight[1][size_t(j)] * weight[0][size_t(i)] *
                        mesh.periodic()(cell[1] + (j - 1), cell[0] + (i - 1));
    value[at] = sum;
  });
}

/// The squared distance of the densities.
class Misfit final : public optimize::VectorObjective {
 public:
  Misfit(const Device& device, const std::vector<double>& guess, const std::vector<double>& truth)
      : VectorObjective(device, device.upload<double>(guess)), mass_(device.allocate<f64>({kCount})) {
    std::vector<double> rest;
    for (int64_t k = 0; k < kCount; ++k)
      for (int64_t along : {k % (2 * kSize), k / (2 * kSize)}) rest.push_back(0.5 * double(along) + 0.25);
    rest_ = device.upload<double>(rest, {kCount, 2});
    primitives::fill(device, mass_, 0.25);
    device.clear(zero_);
    transfer(device.upload<double>(truth), seen_);
  }
  void launch_at(const Buffer& wave, const Buffer& gradient, const Buffer& value) override {
    transfer(wave, miss_);
    primitives::axpy(device(), -1, seen_, miss_);
    const Buffer flat = miss_.reshape({miss_.elements()});
    primitives::dot(device(), flat, flat, value);
    primitives::scale(device(), 2, miss_);
    run(by_x_,
        Arguments().set("b0", miss_).set("b1", x_).set("b2_cotangent", mass_).set("b1_gradient", back_));
    run(by_wave_,
        Arguments().set("b0", rest_).set("b1", wave).set("b2_cotangent", back_).set("b1_gradient", gradient));
  }

 private:
  void run(const Gradient& gradient, const Arguments& list) { gradient.launch(device(), {kCount}, list); }
  /// The particles' masses on the mesh: the transpose of the interpolation.
  void transfer(const Buffer& wave, const Buffer& mesh) {
    device().launch(displace_, {kCount}, rest_, wave, x_);
    run(by_mesh_,
        Arguments().set("b0", zero_).set("b1", x_).set("b2_cotangent", mass_).set("b0_gradient", mesh));
  }
  Buffer field() const { return device().allocate<f64>({kSize, kSize}); }
  const Kernel displace_ = displace(), interpolate_ = interpolate();
  const Gradient by_mesh_ = differentiate(interpolate_, {{"b0"}, {}}),
                 by_x_ = differentiate(interpolate_, {{"b1"}, {}}),
                 by_wave_ = differentiate(displace_, {{"b1"}, {}});
  Buffer rest_, mass_, x_ = device().allocate<f64>({kCount, 2}), back_ = device().allocate<f64>({kCount, 2});
  Buffer zero_ = field(), seen_ = field(), miss_ = field();
};

/// The slopes at the misfit's point, moved along the first phase.
std::array<double, 2> value_and_slope(Misfit& misfit, double step) {
  misfit.launch(misfit.device().upload<double>({0, step, 0, 0}));
  return {misfit.device().download<double>(misfit.value())[0],
          misfit.device().download<double>(misfit.gradient())[1]};
}
}  // namespace

int main() try {
  const std::vector<double> truth{0.9, 0.5, 0.6, -0.8}, guess{0.4, 0, 0.3, 0};
  Misfit misfit(Device::open("cpu"), guess, truth), again(Device::open("interp"), guess, truth);
  const double difference = (value_and_slope(misfit, 1e-6)[0] - value_and_slope(misfit, -1e-6)[0]) / 2e-6;
  const double slope = value_and_slope(misfit, 0)[1];
  const bool same = value_and_slope(again, 0)[1] == slope;
  std::printf("one component: gradient %.9g, central difference %.9g\n", slope, difference);
  std::printf("the interpreter gives %s\n", same ? "the same bits" : "OTHER BITS");

  const optimize::Result result = optimize::minimize(misfit);
  const std::vector<double> found = misfit.device().download<double>(misfit.point());
  double worst = 0;
  for (size_t k = 0; k < 4; ++k) {
    std::printf("along %c, %s: %.6f of %.6f\n", "xy"[k / 2], k % 2 ? "phase" : "amplitude", found[k],
                truth[k]);
    worst = std::fmax(worst, std::fabs(found[k] - truth[k]));
  }
  std::printf("misfit %.3g after %d iterations\n", result.value, result.iterations);
  return same && std::fabs(slope - difference) < 1e-6 * std::fabs(difference) && worst < 1e-5 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
