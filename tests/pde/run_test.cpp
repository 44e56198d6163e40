// Losses of named arrays, as programs and scripts ask for them: a trajectory is the sum of its losses of three levels,
// with and without gradients, and what it cannot do is refused by name.
#include "lockstep/pde/run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lockstep/error.hpp"

namespace lockstep::pde {
namespace {

constexpr int64_t kLevels = 5, kCells = 6 * 5 * 4;

NamedArrays random_trajectory() {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> number(-1, 1);
  const auto array = [&](std::vector<int64_t> shape, double least) {
    Array a(Storage::f64, std::move(shape));
    for (double& v : a.mutate<double>()) v = least + number(random);
    return a;
  };
  return {{"sigma", array({kLevels, 4, 5, 6}, 2)},
          {"u", array({kLevels, 3, 4, 5, 6}, 0)},
          {"mask", array({4, 5, 6}, 1)}};
}

RunOptions options() {
  RunOptions o;
  o.spacing = {0.5, 0.25, 1};
  o.dt = 0.1;
  o.boundary = BoundaryConditions::parse("no_slip");
  o.terms.weight_u = 3;
  return o;
}

/// Adds the gradients of one loss of three levels to those of its levels.
void add(std::span<double> all, const RunResult& one, const char* field, int64_t first, int64_t each) {
  for (int64_t level = 0; level < 3; ++level)
    for (const auto& [name, values] : one.gradients)
      if (name == std::string("d_") + field + std::to_string(level))
        for (int64_t k = 0; k < each; ++k)
          all[size_t((first + level) * each + k)] += values.as<double>()[size_t(k)];
}

TEST(PdeRun, ATrajectoryIsTheSumOfItsLosses) {
  Context context(ContextOptions{.device = "cpu"});
  const NamedArrays arrays = random_trajectory();
  const RunResult whole = run_trajectory(context, arrays, options());
  double loss = 0;
  std::vector<double> sigma(kLevels * kCells), u(kLevels * 3 * kCells);
  for (int64_t n = 0; n + 2 < kLevels; ++n) {
    NamedArrays three{{"mask", arrays.at("mask")}};
    for (int64_t k = 0; k < 3; ++k)
      for (const char* field : {"sigma", "u"}) three[field + std::to_string(k)] = arrays.at(field)[n + k];
    const RunResult one = run_loss(context, three, options());
    loss += one.loss;
    add(sigma, one, "sigma", n, kCells);
    add(u, one, "u", n, 3 * kCells);
  }
  EXPECT_NEAR(whole.loss, loss, 1e-13 * loss);
  ASSERT_EQ(whole.gradients.size(), 2u);
  for (const auto& [name, expected] : {std::pair{"d_sigma", &sigma}, std::pair{"d_u", &u}}) {
    const auto found = std::find_if(whole.gradients.begin(), whole.gradients.end(),
                                    [&](auto& g) { return g.first == name; });
    ASSERT_NE(found, whole.gradients.end()) << name;
    const auto values = found->second.as<double>();
    ASSERT_EQ(values.size(), expected->size());
    for (size_t k = 0; k < values.size(); ++k)
      ASSERT_NEAR(values[k], (*expected)[k], 1e-12 * loss) << name << " " << k;
  }
}

TEST(PdeRun, ATrajectoryHasItsLossWithoutGradients) {
  Context context(ContextOptions{.device = "cpu"});
  RunOptions without = options();
  without.gradients = Gradients::none;
  const RunResult found = run_trajectory(context, random_trajectory(), without);
  EXPECT_TRUE(found.gradients.empty());
  EXPECT_NEAR(found.loss, run_trajectory(context, random_trajectory(), options()).loss, 1e-13 * found.loss);
  EXPECT_EQ(found.levels, kLevels);
}

TEST(PdeRun, WhatATrajectoryCannotDoIsRefused) {
  Context context(ContextOptions{.device = "cpu"});
  const auto error = [&](auto change) -> std::string {
    RunOptions o = options();
    change(o);
    try {
      run_trajectory(context, random_trajectory(), o);
    } catch (const InputError& e) { return e.what(); }
    return "none";
  };
  EXPECT_NE(error([](RunOptions& o) { o.gradients = Gradients::t1; }).find("gradients of some levels"),
            std::string::npos);
  EXPECT_NE(error([](RunOptions& o) { o.gradients = Gradients::t1t2; }).find("gradients of some levels"),
            std::string::npos);
  EXPECT_NE(error([](RunOptions& o) { o.residuals = true; }).find("residual fields"), std::string::npos);
  EXPECT_NE(error([](RunOptions& o) { o.terms.pressure = true; }).find("pressure or forcing"),
            std::string::npos);
  EXPECT_NE(error([](RunOptions& o) { o.terms.forcing = true; }).find("pressure or forcing"),
            std::string::npos);
  EXPECT_NE(error([](RunOptions& o) { o.reference = true; }).find("kernel for a trajectory"),
            std::string::npos);
  EXPECT_NE(error([](RunOptions& o) { o.path = Path::two_sweep; }).find("kernel for a trajectory"),
            std::string::npos);
  EXPECT_EQ(error([](RunOptions&) {}), "none");
}

}  // namespace
}  // namespace lockstep::pde
