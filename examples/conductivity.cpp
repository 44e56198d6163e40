// Finds the conductivity of a plate from pictures of its temperature: the heat equation in steps, its gradient by
// `differentiate`, Adam on the logarithm of the conductivity.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lockstep/differentiate.hpp"
#include "lockstep/primitives.hpp"

using namespace lockstep;

namespace {
constexpr int64_t kSize = 24;
constexpr int kSteps = 10;

/// Heat flows between neighbours by the mean of their conductivities exp(q).
Kernel heat_step() {
  return kernel("example.heat", [](At<2> at, Grid<f64, 2> t, Grid<f64, 2> q, Out<f64, 2> next) {
    const auto flux = [&](const Position<2>& to) { return (exp(q[at]) + exp(q[to])) * (t[to] - t[at]); };
    next[at] = t[at] + 0.05 * (flux(at.x(+1)) + flux(at.x(-1)) + flux(at.y(+1)) + flux(at.y(-1)));
  });
}

class Plate {
 public:
  explicit Plate(const Device& device) : device_(device) {
    std::vector<double> start;
    for (int64_t k = 0; k < kSize * kSize; ++k) start.push_back(std::fmod(double(k * k) * 0.618, 1));
    for (int n = 0; n <= kSteps; ++n) states_.push_back(field());
    device.write(states_[0], start.data(), states_[0].bytes());
    seed_ = field(), back_ = field(), part_ = field(), gradient_ = field();
  }
  /// Pictures of the temperature after each step.
  std::vector<std::vector<double>> run(const Buffer& q) {
    std::vector<std::vector<double>> pictures;
    for (int n = 0; n < kSteps; ++n) {
      device_.launch(heat_, {kSize, kSize}, states_[size_t(n)], q, states_[size_t(n) + 1]);
      pictures.push_back(device_.download<double>(states_[size_t(n) + 1]));
    }
    return pictures;
  }
  /// Half the squared distance to pictures; `slope`: its gradient by q.
  double loss(const Buffer& q, const std::vector<std::vector<double>>& seen, std::vector<double>& slope) {
    const auto pictures = run(q);
    double sum = 0;
    device_.clear(seed_);
    device_.clear(gradient_);
    for (int n = kSteps; n > 0; --n) {
      std::vector<double> miss = pictures[size_t(n) - 1];
      for (size_t k = 0; k < miss.size(); ++k) {
        miss[k] -= seen[size_t(n) - 1][k];
        sum += 0.5 * miss[k] * miss[k];
      }
      primitives::axpy(device_, 1, device_.upload<double>(miss, {kSize, kSize}), seed_);
      adjoint_.launch(device_, {kSize, kSize},
                      Arguments()
                          .set("b0", states_[size_t(n) - 1])
                          .set("b1", q)
                          .set("b2_cotangent", seed_)
                          .set("b0_gradient", back_)
                          .set("b1_gradient", part_));
      primitives::axpy(device_, 1, part_, gradient_);
      std::swap(seed_, back_);
    }
    slope = device_.download<double>(gradient_);
    return sum;
  }

 private:
  Buffer field() const { return device_.allocate<f64>({kSize, kSize}); }
  Device device_;
  const Kernel heat_ = heat_step();
  const Gradient adjoint_ = differentiate(heat_);
  std::vector<Buffer> states_;
  Buffer seed_, back_, part_, gradient_;
};
}  // namespace

int main() try {
  const Device device = Device::open("cpu");
  Plate plate(device);
  std::vector<double> truth, q(kSize * kSize), slope, first(q.size()), second(q.size());
  for (int64_t k = 0; k < kSize * kSize; ++k)
    truth.push_back(std::hypot(double(k / kSize) - 10, double(k % kSize) - 13) < 6 ? 0.7 : 0);
  const auto on_device = [&](const auto& v) { return device.upload<double>(v, {kSize, kSize}); };
  const auto seen = plate.run(on_device(truth));

  const size_t probe = 10 * kSize + 13;
  std::vector<double> ignored, moved = q;
  plate.loss(on_device(q), seen, slope);
  moved[probe] = 1e-5;
  const double above = plate.loss(on_device(moved), seen, ignored);
  moved[probe] = -1e-5;
  const double difference = (above - plate.loss(on_device(moved), seen, ignored)) / 2e-5;
  std::printf("one component: gradient %.9g, central difference %.9g\n", slope[probe], difference);
  const bool agrees = std::abs(slope[probe] - difference) < 1e-6 * std::abs(difference);

  double loss = 0;
  for (int n = 1; n <= 400; ++n) {
    loss = plate.loss(on_device(q), seen, slope);
    for (size_t k = 0; k < q.size(); ++k) {
      first[k] = 0.9 * first[k] + 0.1 * slope[k];
      second[k] = 0.99 * second[k] + 0.01 * slope[k] * slope[k];
      const double mean = first[k] / (1 - std::pow(0.9, n)), square = second[k] / (1 - std::pow(0.99, n));
      q[k] -= 0.05 * mean / (std::sqrt(square) + 1e-12);
    }
  }
  double worst = 0;
  for (size_t k = 0; k < q.size(); ++k) worst = std::max(worst, std::abs(std::exp(q[k] - truth[k]) - 1));
  for (int64_t y = 0; y < kSize; y += 2) {
    for (int64_t x = 0; x < kSize; ++x)
      std::putchar(" .:-=+*#"[std::clamp(int(q[size_t(y * kSize + x)] * 10), 0, 7)]);
    std::putchar('\n');
  }
  std::printf("loss %.3g, conductivity within %.2g %% everywhere\n", loss, 100 * worst);
  return agrees && worst < 0.1 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
