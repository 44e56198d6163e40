// Finds a shape from one picture of it: a ray march through a soft solid, differentiated. The solid is a smooth union of two
// balls, the picture its light after absorption, dimmed with distance. Rays advance by the distance to the surface, so the
// number of their steps depends on the shape. All rays read the same eight numbers, whose gradients are exact sums.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lockstep/differentiate.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/optimize.hpp"
#include "lockstep/primitives.hpp"

using namespace lockstep;

namespace {
constexpr int64_t kSize = 32;
constexpr double kSoft = 0.08, kBlend = 0.3, kLeast = 0.05, kFar = 4.0;

Kernel march() {
  return kernel("example.shape", [](At<2> at, Grid<f64, 1> shape, Out<f64, 2> light) {
    const auto distance = [&](const Vec3<f64>& p) {
      const auto ball = [&](int k) {
        return length(p - Vec3<f64>(shape[k], shape[k + 1], shape[k + 2])) - shape[k + 3];
      };
      const Val<f64> a = ball(0), b = ball(4);
      return 0.5 * (a + b - sqrt((a - b) * (a - b) + kBlend * kBlend));
    };
    const auto of_pixel = [](const Val<i32>& i) { return (cast<f64>(i) + 0.5) * (2.4 / kSize) - 1.2; };
    const Val<f64> x = of_pixel(at.x), y = of_pixel(at.y);
    Var<f64> z = 0.0, passed = 1.0, sum = 0.0;
    while_([&] { return z < kFar; },
           [&] {
             const Val<f64> d = distance(Vec3<f64>(x, y, z)), step = max(0.7 * abs(d), kLeast);
             const Val<f64> through = exp(-6.0 * sigmoid(-d / kSoft) * step);
             sum += passed * (1.0 - through) * exp(-0.5 * z);
             passed *= through;
             z += step;
           });
    light[at] = sum;
  });
}

/// The squared distance to a picture.
class Misfit final : public optimize::VectorObjective {
 public:
  Misfit(const Device& device, const std::vector<double>& guess, const std::vector<double>& truth)
      : VectorObjective(device, device.upload<double>(guess)),
        seen_(device.allocate<f64>({kSize, kSize})),
        miss_(device.allocate<f64>({kSize, kSize})) {
    device.launch(march_, {kSize, kSize}, device.upload<double>(truth), seen_);
  }
  void launch_at(const Buffer& x, const Buffer& gradient, const Buffer& value) override {
    device().launch(march_, {kSize, kSize}, x, miss_);
    primitives::axpy(device(), -1, seen_, miss_);
    const Buffer flat = miss_.reshape({miss_.elements()});
    primitives::dot(device(), flat, flat, value);
    primitives::scale(device(), 2, miss_);
    gradient_.launch(device(), {kSize, kSize},
                     Arguments().set("b0", x).set("b1_cotangent", miss_).set("b0_gradient", gradient));
  }
  bool recordable() const override { return false; }  // records of loops are sized by the launch
  std::vector<double> picture() const {
    device().launch(march_, {kSize, kSize}, point(), miss_);
    return device().download<double>(miss_);
  }

 private:
  const Kernel march_ = march();
  const Gradient gradient_ = differentiate(march_);
  Buffer seen_, miss_;
};

/// The misfit at its point, moved along one number of the shape.
double value_at(Misfit& misfit, size_t number, double step) {
  std::vector<double> along(8);
  along[number] = step;
  misfit.launch(misfit.device().upload<double>(along));
  return misfit.device().download<double>(misfit.value())[0];
}
}  // namespace

int main() try {
  const Device device = Device::open("cpu");
  const std::vector<double> truth{-0.45, 0.2,  1.8, 0.5,
                                  0.5,   -0.3, 2.4, 0.65},  // x, y, z, radius of each ball
      guess{-0.25, 0.0, 2.1, 0.35, 0.3, -0.05, 2.1, 0.75};
  Misfit misfit(device, guess, truth);
  const double difference = (value_at(misfit, 3, 1e-6) - value_at(misfit, 3, -1e-6)) / 2e-6;
  value_at(misfit, 3, 0);
  const double slope = device.download<double>(misfit.gradient())[3];
  std::printf("one component: gradient %.9g, central difference %.9g\n", slope, difference);

  const optimize::Result result = optimize::minimize(misfit);
  const std::vector<double> light = misfit.picture(), found = device.download<double>(misfit.point());
  for (int64_t y = 0; y < kSize; y += 2) {
    for (int64_t x = 0; x < kSize; ++x)
      std::putchar(" .:-=+*#"[std::clamp(int(light[size_t(y * kSize + x)] * 16), 0, 7)]);
    std::putchar('\n');
  }
  double worst = 0;
  for (size_t k = 0; k < 8; ++k) {
    std::printf("ball %zu, %s: %.5f of %.5f\n", k / 4, k % 4 < 3 ? "centre" : "radius", found[k], truth[k]);
    worst = std::fmax(worst, std::fabs(found[k] - truth[k]));
  }
  std::printf("misfit %.3g after %d iterations\n", result.value, result.iterations);
  return std::fabs(slope - difference) < 1e-6 * std::fabs(difference) && worst < 1e-3 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
