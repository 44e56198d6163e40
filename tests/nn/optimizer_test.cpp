// Optimisers against their formulas in plain C++; schedules at known steps.
#include "lockstep/nn/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "device/devices.hpp"
#include "lockstep/error.hpp"

namespace lockstep::nn {
namespace {

using optimize::Method;

TEST(Schedule, KnownSteps) {
  const Schedule cosine{
      .rate = 2, .warmup = 4, .decay = Schedule::Decay::cosine, .total = 14, .final_share = 0.1};
  EXPECT_DOUBLE_EQ(cosine.at(0), 0.5);
  EXPECT_DOUBLE_EQ(cosine.at(3), 2);
  EXPECT_DOUBLE_EQ(cosine.at(4), 2);
  EXPECT_DOUBLE_EQ(cosine.at(9), 2 * (0.1 + 0.9 * 0.5));
  EXPECT_DOUBLE_EQ(cosine.at(14), 0.2);
  EXPECT_DOUBLE_EQ(cosine.at(99), 0.2);
  const Schedule linear{.rate = 1, .decay = Schedule::Decay::linear, .total = 10};
  EXPECT_DOUBLE_EQ(linear.at(0), 1);
  EXPECT_DOUBLE_EQ(linear.at(4), 0.6);
  EXPECT_DOUBLE_EQ(linear.at(10), 0);
  const Schedule to_a_fifth{.rate = 10, .decay = Schedule::Decay::linear, .total = 8, .final_share = 0.2};
  EXPECT_DOUBLE_EQ(to_a_fifth.at(4), 6);  // half way from 10 to 2
  EXPECT_DOUBLE_EQ(to_a_fifth.at(8), 2);
  EXPECT_DOUBLE_EQ(to_a_fifth.at(80), 2);
  const Schedule step{.rate = 1, .decay = Schedule::Decay::step, .every = 5, .factor = 0.5};
  EXPECT_DOUBLE_EQ(step.at(4), 1);
  EXPECT_DOUBLE_EQ(step.at(5), 0.5);
  EXPECT_DOUBLE_EQ(step.at(12), 0.25);
  EXPECT_DOUBLE_EQ(Schedule{.rate = 0.3}.at(1000000), 0.3);
}

struct Formula {
  Method method;
  double momentum, decay, clip;
};

TEST(Optimizer, FollowsItsFormula) {
  const std::vector<double> start{1, -2, 0.5, 4, 0};
  for (const Formula f : {Formula{Method::sgd, 0, 0, 0},
                          {Method::sgd, 0.9, 0, 1},
                          {Method::adam, 0, 0, 0},
                          {Method::adam, 0, 0, 0.5},
                          {Method::adamw, 0, 0.1, 0}}) {
    std::vector<double> x = start, m(5), v(5), move(5);
    const Schedule schedule{.rate = 0.1, .warmup = 2, .decay = Schedule::Decay::cosine, .total = 6};
    for (const std::string& name : host_devices()) {
      const Device& device = test_device(name);
      const Buffer parameters = device.upload(start);
      Optimizer optimizer(device, parameters,
                          {.method = f.method,
                           .schedule = schedule,
                           .momentum = f.momentum,
                           .weight_decay = f.decay,
                           .clip_norm = f.clip});
      x = start, m.assign(5, 0), v.assign(5, 0);
      for (int t = 1; t <= 5; ++t) {
        std::vector<double> g(5);
        double norm = 0;
        for (size_t i = 0; i < 5; ++i) g[i] = std::sin(double(i) + double(t)) * 2, norm += g[i] * g[i];
        norm = std::sqrt(norm);
        optimizer.launch_step(device.upload(g));
        if (f.clip > 0) {
          EXPECT_DOUBLE_EQ(device.download<f64>(optimizer.gradient_norm())[0], norm);
          for (double& e : g) e *= norm > f.clip ? f.clip / norm : 1;
        }
        const double rate = schedule.at(t - 1);
        for (size_t i = 0; i < 5; ++i) {
          if (f.method == Method::sgd) {
            m[i] = f.momentum * m[i] + g[i];
            move[i] = -rate * m[i];
          } else {
            m[i] = 0.9 * m[i] + 0.1 * g[i];
            v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
            move[i] = -rate * (m[i] / (1 - std::pow(0.9, t))) /
                          (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8) -
                      rate * f.decay * x[i];
          }
          x[i] += move[i];
        }
      }
      EXPECT_EQ(optimizer.steps(), 5);
      const auto expect = [&](const Buffer& got, const std::vector<double>& wanted) {
        const std::vector<double> values = device.download<f64>(got);
        for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(values[i], wanted[i], 1e-13) << int(f.method) << " " << i;
      };
      expect(parameters, x);
      expect(optimizer.first(), m);
      expect(optimizer.second(), v);
      expect(optimizer.move(), move);
    }
  }
}

TEST(Optimizer, GoesOnFromItsStateAndForgetsMoments) {
  const Device& device = test_device(host_devices()[0]);
  const std::vector<double> start{1, -2, 3};
  const OptimizerOptions options{.method = Method::adam,
                                 .schedule = {.rate = 0.1, .decay = Schedule::Decay::linear, .total = 20}};
  const auto gradient = [&](int t) { return device.upload(std::vector<double>{double(t), -1, 0.5 * t * t}); };
  const Buffer x = device.upload(start), y = device.upload(start);
  Optimizer whole(device, x, options), rest(device, y, options);
  for (int t = 1; t <= 4; ++t) whole.launch_step(gradient(t));
  device.copy(x, y);
  device.copy(whole.first(), rest.first());
  device.copy(whole.second(), rest.second());
  rest.set_steps(whole.steps(), whole.moment_steps());
  for (int t = 5; t <= 7; ++t) whole.launch_step(gradient(t)), rest.launch_step(gradient(t));
  EXPECT_EQ(device.download<f64>(y), device.download<f64>(x));

  // From zeros again, at the rate of the seventh step: Adam's first step moves by the rate along the sign.
  const std::vector<double> before = device.download<f64>(x);
  whole.forget_moments();
  whole.launch_step(gradient(1));
  const std::vector<double> after = device.download<f64>(x);
  EXPECT_EQ(whole.moment_steps(), 1);
  EXPECT_EQ(whole.steps(), 8);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(std::abs(after[i] - before[i]), options.schedule.at(7), 1e-7);
}

TEST(Optimizer, RefusesWhatMakesNoSense) {
  const Device& device = test_device(host_devices()[0]);
  const Buffer x = device.upload(std::vector<double>{1, 2});
  const auto refused = [&](const OptimizerOptions& options) {
    EXPECT_THROW(Optimizer(device, x, options), InputError);
  };
  refused({.method = Method::lbfgs});
  refused({.schedule = {.rate = -1}});
  refused({.schedule = {.decay = Schedule::Decay::cosine}});
  refused({.schedule = {.decay = Schedule::Decay::step}});
  refused({.momentum = 1});
  refused({.weight_decay = -1});
  refused({.clip_norm = -1});
  EXPECT_THROW(Optimizer(device, device.allocate<i32>({3}), {}), InputError);
  EXPECT_THROW(parse_decay("steep"), InputError);
  EXPECT_EQ(parse_decay("linear"), Schedule::Decay::linear);
}

}  // namespace
}  // namespace lockstep::nn
