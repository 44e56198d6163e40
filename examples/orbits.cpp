// Finds masses and velocities of planets from where they were seen. One lane integrates the system: leapfrog steps in two
// loops, bodies in arrays of the lane. `differentiate` gives the slope of the misfit through all steps, L-BFGS the minimum.
#include <cmath>
#include <cstdio>

#include "lockstep/differentiate.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/optimize.hpp"
#include "lockstep/primitives.hpp"

using namespace lockstep;

namespace {
constexpr int kBodies = 3, kSights = 24, kSteps = 8, kUnknown = 3 * kBodies;  // masses, then velocities
constexpr double kDt = 0.05, kSoft = 1e-3;

Kernel orbits() {  // seen[time, 2 body + axis]
  return kernel("example.orbits", [](At<1>, Grid<f64, 1> start, Grid<f64, 1> unknown, Out<f64, 2> seen) {
    const LocalArray<f64> x(2 * kBodies), v(2 * kBodies);
    for (int k = 0; k < 2 * kBodies; ++k) {
      x[k] = start[k];
      v[k] = unknown[kBodies + k];
    }
    const auto kick = [&] {
      for (int i = 0; i < kBodies; ++i)
        for (int j = 0; j < i; ++j) {
          const Vec2<f64> d(x[2 * j] - x[2 * i], x[2 * j + 1] - x[2 * i + 1]);
          const Val<f64> d2 = dot(d, d) + kSoft, pull = 0.5 * kDt / (d2 * sqrt(d2));
          for (int axis = 0; axis < 2; ++axis) {
            v[2 * i + axis] += unknown[j] * pull * d[axis];
            v[2 * j + axis] -= unknown[i] * pull * d[axis];
          }
        }
    };
    for_(0, kSights, [&](const Val<i32>& n) {
      for_(0, kSteps, [&](auto) {
        kick();
        for (int k = 0; k < 2 * kBodies; ++k) x[k] += kDt * v[k];
        kick();
      });
      for (int k = 0; k < 2 * kBodies; ++k) seen(n, k) = x[k];
    });
  });
}

/// The squared distance to what was seen.
class Misfit final : public optimize::VectorObjective {
 public:
  Misfit(const Device& device, const std::vector<double>& guess, const std::vector<double>& truth)
      : VectorObjective(device, device.upload<double>(guess)),
        start_(device.upload<double>({0, 0, 1, 0, 0, 1.8})),
        seen_(device.allocate<f64>({kSights, 2 * kBodies})),
        miss_(device.allocate<f64>({kSights, 2 * kBodies})) {
    device.launch(orbits_, {1}, start_, device.upload<double>(truth), seen_);
  }
  void launch_at(const Buffer& x, const Buffer& gradient, const Buffer& value) override {
    device().launch(orbits_, {1}, start_, x, miss_);
    primitives::axpy(device(), -1, seen_, miss_);
    const Buffer flat = miss_.reshape({miss_.elements()});
    primitives::dot(device(), flat, flat, value);
    primitives::scale(device(), 2, miss_);
    gradient_.launch(
        device(), {1},
        Arguments().set("b0", start_).set("b1", x).set("b2_cotangent", miss_).set("b1_gradient", gradient));
  }
  bool recordable() const override { return false; }  // records of loops are sized by the launch

 private:
  const Kernel orbits_ = orbits();
  const Gradient gradient_ = differentiate(orbits_, {{"b1"}, {}});
  Buffer start_, seen_, miss_;
};

/// The misfit at its point, moved along one unknown.
double value_at(Misfit& misfit, size_t unknown, double step) {
  std::vector<double> along(kUnknown);
  along[unknown] = step;
  misfit.launch(misfit.device().upload<double>(along));
  return misfit.device().download<double>(misfit.value())[0];
}
}  // namespace

int main() try {
  const Device device = Device::open("cpu");
  const std::vector<double> truth{1.0, 0.06, 0.03, 0.0, -0.04, 0.0, 1.0, -0.74, 0.0},
      guess{1.03, 0.055, 0.033, 0.01, -0.03, 0.01, 0.99, -0.75, 0.01};
  Misfit misfit(device, guess, truth);
  const double difference = (value_at(misfit, 1, 1e-6) - value_at(misfit, 1, -1e-6)) / 2e-6;
  value_at(misfit, 1, 0);
  const double slope = device.download<double>(misfit.gradient())[1];
  std::printf("one component: gradient %.9g, central difference %.9g\n", slope, difference);

  optimize::Options options;
  options.max_iterations = 300;
  options.value_tolerance = 0;
  const optimize::Result result = optimize::minimize(misfit, options);
  const std::vector<double> found = device.download<double>(misfit.point());
  double worst = 0;
  for (size_t k = 0; k < kUnknown; ++k) {
    std::printf("%s %zu: %+.6f of %+.6f\n", k < kBodies ? "mass" : "velocity", k < kBodies ? k : k - kBodies,
                found[k], truth[k]);
    worst = std::fmax(worst, std::fabs(found[k] - truth[k]));
  }
  std::printf("misfit %.3g after %d iterations\n", result.value, result.iterations);
  return std::fabs(slope - difference) < 1e-6 * std::fabs(difference) && worst < 1e-4 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
