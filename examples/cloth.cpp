// A cloth learns its stiffness from how it falls: masses and springs, one launch for each step of time, and the adjoints of
// the steps from last to first.
#include <cmath>
#include <cstdio>
#include <numbers>

#include "lockstep/differentiate.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/optimize.hpp"
#include "lockstep/primitives.hpp"

using namespace lockstep;

namespace {
constexpr int64_t kSize = 8, kSteps = 60;
constexpr double kDt = 0.02, kGravity = 9.81, kDrag = 0.4;

/// Masses of 1 at distances of 1; stiffness exp(log_stiffness) of springs along rows and columns, and along diagonals. The ends
/// of the first row are pinned.
Kernel fall_step() {
  return kernel("example.cloth", [](At<2> at, Grid<f64, 3> x, Grid<f64, 3> v, Grid<f64, 1> log_stiffness,
                                    Out<f64, 3> x_next, Out<f64, 3> v_next) {
    const auto place = [&](const Position<2>& to) { return Vec3<f64>(x(0, to), x(1, to), x(2, to)); };
    const Vec3<f64> here = place(at);
    VarVec<f64, 3> force = Vec3<f64>(0.0, 0.0, -kGravity);
    for (int i = -1; i <= 1; ++i)
      for (int j = -1; j <= 1; ++j) {
        if (i == 0 && j == 0) continue;
        const bool diagonal = i * j != 0;
        const Val<bool> inside =
            at.x + i >= 0 && at.x + i < int(kSize) && at.y + j >= 0 && at.y + j < int(kSize);
        const Vec3<f64> d = place(at.x(i).y(j)) - here;
        // Outside, the read gives the mass itself: its distance of 0 would make the derivative of the root infinite.
        const Val<f64> length = sqrt(select(inside, dot(d, d), 1.0));
        const Val<f64> stretch = 1.0 - (diagonal ? std::numbers::sqrt2 : 1.0) / length;
        force += select(inside, exp(log_stiffness[diagonal ? 1 : 0]) * stretch, 0.0) * d;
      }
    const auto pinned = at.y == 0 && (at.x == 0 || at.x == int(kSize) - 1);
    for (int c = 0; c < 3; ++c) {
      const Val<f64> speed = select(pinned, 0.0, (v(c, at) + kDt * force[c]) * (1.0 - kDrag * kDt));
      v_next(c, at) = speed;
      x_next(c, at) = here[c] + kDt * speed;
    }
  });
}

/// The squared distance of all frames to those that were seen.
class Misfit final : public optimize::VectorObjective {
 public:
  Misfit(const Device& device, const std::vector<double>& guess, const std::vector<double>& truth)
      : VectorObjective(device, device.upload<double>(guess)), part_(device.allocate<f64>({2})) {
    std::vector<double> flat;
    for (int64_t k = 0; k < 3 * kSize * kSize; ++k)  // axis, row, column
      flat.push_back(double(k < kSize * kSize ? k % kSize : k < 2 * kSize * kSize ? k / kSize % kSize : 0));
    for (std::vector<Buffer>* list : {&x_, &v_, &seen_})
      for (int n = 0; n <= kSteps; ++n) list->push_back(field());
    device.write(x_[0], flat.data(), x_[0].bytes());
    device.clear(v_[0]);
    fall(device.upload<double>(truth));
    for (size_t n = 1; n <= kSteps; ++n) primitives::copy(device, x_[n], seen_[n]);
  }
  void launch_at(const Buffer& stiffness, const Buffer& gradient, const Buffer& value) override {
    fall(stiffness);
    for (const Buffer& b : {seed_x_, seed_v_, gradient, value}) device().clear(b);
    for (size_t n = kSteps; n > 0; --n) {
      primitives::copy(device(), x_[n], miss_);
      primitives::axpy(device(), -1, seen_[n], miss_);
      const Buffer flat = miss_.reshape({miss_.elements()}), square = part_.rows(0, 1);
      primitives::dot(device(), flat, flat, square);
      primitives::axpy(device(), 1, square, value);
      primitives::axpy(device(), 2, miss_, seed_x_);
      step_back_.launch(device(), {kSize, kSize},
                        Arguments()
                            .set("b0", x_[n - 1])
                            .set("b1", v_[n - 1])
                            .set("b2", stiffness)
                            .set("b3_cotangent", seed_x_)
                            .set("b4_cotangent", seed_v_)
                            .set("b0_gradient", back_x_)
                            .set("b1_gradient", back_v_)
                            .set("b2_gradient", part_));
      primitives::axpy(device(), 1, part_, gradient);
      std::swap(seed_x_, back_x_), std::swap(seed_v_, back_v_);
    }
  }
  bool recordable() const override { return false; }  // buffers change places
 private:
  void fall(const Buffer& stiffness) {
    for (size_t n = 0; n < kSteps; ++n)
      device().launch(step_, {kSize, kSize}, x_[n], v_[n], stiffness, x_[n + 1], v_[n + 1]);
  }
  Buffer field() const { return device().allocate<f64>({3, kSize, kSize}); }
  const Kernel step_ = fall_step();
  const Gradient step_back_ = differentiate(step_);
  std::vector<Buffer> x_, v_, seen_;
  Buffer part_, miss_ = field(), seed_x_ = field(), seed_v_ = field(), back_x_ = field(), back_v_ = field();
};
}  // namespace

int main() try {
  const Device device = Device::open("cpu");
  Misfit misfit(device, {std::log(150), std::log(150)}, {std::log(300), std::log(60)});
  const auto value_at = [&](double step) {
    misfit.launch(device.upload<double>({0, step}));
    return device.download<double>(misfit.value())[0];
  };
  const double difference = (value_at(1e-6) - value_at(-1e-6)) / 2e-6;
  value_at(0);
  const double slope = device.download<double>(misfit.gradient())[1];
  std::printf("one component: gradient %.9g, central difference %.9g\n", slope, difference);
  const optimize::Result result = optimize::minimize(misfit);
  const std::vector<double> found = device.download<double>(misfit.point());
  std::printf("stretch %.4f of 300, shear %.4f of 60, misfit %.3g after %d iterations\n", std::exp(found[0]),
              std::exp(found[1]), result.value, result.iterations);
  const double worst = std::fabs(std::exp(found[0]) / 300 - 1) + std::fabs(std::exp(found[1]) / 60 - 1);
  return std::fabs(slope - difference) < 1e-6 * std::fabs(difference) && worst < 1e-4 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
