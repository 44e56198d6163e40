// Orders of the integrators by refinement, transforms of any length, initial fields.
#include <gtest/gtest.h>

#include "flows.hpp"

namespace lockstep::flow {
namespace {

double observed_order(Integrator integrator) {
  const Model model{.grid = {24, 24}, .viscosity = 0.02, .drag = 0.1, .beta = 1};
  const auto w = test::smooth(model.grid);
  const auto end = [&](Integrator how, int64_t steps) {
    auto flow = test::started(model, {how, 1.0 / double(steps)}, w);
    test::run(flow, steps);
    return flow.vorticity();
  };
  const auto exact = end(Integrator::rk4, 320);
  const double coarse = test::relative_l2(end(integrator, 20), exact);
  const double fine = test::relative_l2(end(integrator, 40), exact);
  return std::log2(coarse / fine);
}

TEST(Accuracy, OrdersOfIntegrators) {
  EXPECT_NEAR(observed_order(Integrator::rk2), 2, 0.15);
  EXPECT_NEAR(observed_order(Integrator::ssprk3), 3, 0.15);
  EXPECT_NEAR(observed_order(Integrator::rk4), 4, 0.2);
  EXPECT_NEAR(observed_order(Integrator::etdrk4), 4, 0.2);
  EXPECT_NEAR(observed_order(Integrator::ab3), 2, 0.6);  // Euler's first step is of order two as a whole
}

TEST(Accuracy, ExponentialIntegratorTakesLinearTermsExactly) {
  const Model model{.grid = {16, 16}, .viscosity = 2, .beta = 3};
  const auto w = test::sampled(model.grid, [](double x, double) { return std::sin(2 * x); });
  auto flow = test::started(model, {Integrator::etdrk4, 0.5}, w);
  test::run(flow, 2);
  const auto exact =  // a Rossby wave that decays
      test::sampled(model.grid, [](double x, double) { return std::exp(-8) * std::sin(2 * x + 1.5); });
  EXPECT_LT(test::relative_l2(flow.vorticity(), exact), 1e-12);
}

TEST(Accuracy, TransformsOfAnyLength) {
  for (const auto& [nx, ny] : {std::pair<int64_t, int64_t>{30, 14}, {22, 26}, {8, 54}}) {
    const BoxGrid grid{nx, ny};
    const auto field = test::sampled(grid, [](double x, double y) {
      return std::sin(2 * x - y) + 0.25 * std::cos(3 * y + 0.5) + 0.125 * std::cos(x);
    });
    const reference::Transform transform(modes_of(grid, Dealias::none));
    const auto w = transform.forward(field);
    EXPECT_NEAR(std::abs(w[size_t(transform.modes().row_of(-1) * transform.modes().columns() + 2)]), 0.5,
                1e-14);
    EXPECT_LT(test::relative_l2(transform.inverse(w), field), 1e-14);
  }
}

TEST(Accuracy, RandomFieldsAreTheSameOnEveryGrid) {
  const BoxGrid coarse{96, 96}, fine{192, 192};
  for (const Initial which : {Initial::noise, Initial::mcwilliams}) {
    const Array a = initial_field(coarse, which, 4), b = initial_field(fine, which, 4);
    const reference::Transform small(modes_of(coarse, Dealias::two_thirds)),
        large(modes_of(fine, Dealias::two_thirds));
    const auto as = small.forward({a.as<double>().begin(), a.as<double>().end()});
    const auto bs = large.forward({b.as<double>().begin(), b.as<double>().end()});
    EXPECT_NEAR(std::abs(as[7] - bs[7]), 0, 1e-13);
    EXPECT_GT(std::abs(as[7]), 1e-6);
    EXPECT_NE(initial_field(coarse, which, 5).at<double>(3, 3), a.at<double>(3, 3));
  }
  const Budget b = [&] {
    reference::Flow flow({.grid = fine}, {});
    flow.set_vorticity(initial_field(fine, Initial::mcwilliams).as<double>());
    return flow.budget();
  }();
  EXPECT_NEAR(b.energy, 0.5, 0.005);  // the norm counts modes beyond these
}

}  // namespace
}  // namespace lockstep::flow
