// The reference against published solutions.
#include <gtest/gtest.h>

#include <fstream>

#include "flows.hpp"
#include "io/test_data.hpp"

namespace lockstep::flow {
namespace {

using test::sampled;

// pyqg, test_reference_solns.py, test_bt: two Gaussians in psi with energy 1, AB3 and a filter. Its grid is
// staggered by half a cell, psi has the other sign, and sums of psi and energy are of one step before.
TEST(Published, BarotropicGolden) {
  Model model{.grid = {64, 64}, .viscosity = 0, .dealias = Dealias::filter, .advection = Advection::flux};
  const double h = model.grid.dx();
  const auto psi = sampled(model.grid, [&](double x, double y) {
    const auto bump = [&](double centre) {
      return std::exp(-std::pow(2 * (x + h / 2 - centre), 2) - std::pow(2 * (y + h / 2 - kPi), 2));
    };
    return -bump(1.75 * kPi / 2) - bump(2.25 * kPi / 2);
  });
  const reference::Transform transform(modes_of(model));
  reference::Spectrum w = transform.forward(psi);
  double energy = 0;
  for (int64_t row = 0; row < transform.modes().rows(); ++row)
    for (int64_t ix = 0; ix < transform.modes().columns(); ++ix) {
      auto& c = w[size_t(row * transform.modes().columns() + ix)];
      const double k2 = double(ix * ix + transform.modes().iy(row) * transform.modes().iy(row));
      const double k = std::sqrt(k2) * h - 0.65 * kPi;
      const double filter = k > 0 ? std::exp(-23.6 * k * k * k * k) : 1;
      energy += (ix > 0 ? 1 : 0.5) * k2 * std::norm(filter * c);
      c *= k2;
    }
  for (auto& c : w) c /= std::sqrt(energy);
  reference::Flow flow(model, {Integrator::ab3, 0.0025});
  flow.set_spectrum(w);
  test::run(flow, 1999);
  const Budget before = flow.budget();
  reference::Spectrum stream = flow.spectrum();
  double sum_psi = 0;
  for (int64_t row = 0; row < transform.modes().rows(); ++row)
    for (int64_t ix = 0; ix < transform.modes().columns(); ++ix) {
      const double k2 = double(ix * ix + transform.modes().iy(row) * transform.modes().iy(row));
      const auto at = size_t(row * transform.modes().columns() + ix);
      if (k2 > 0) sum_psi += (ix > 0 ? 2 : 1) * std::norm(stream[at] / k2);
    }
  test::run(flow, 1);
  EXPECT_NEAR(flow.budget().enstrophy * 2 * 4096 / 89101.741238768518, 1, 1e-10);
  EXPECT_NEAR(sum_psi * 4096 / 1493.217664248918, 1, 1e-10);
  EXPECT_NEAR(before.energy / 0.9950360837282386, 1, 1e-10);
}

// spectralDNS, demo/Vortices2D.py: velocity along the first axis (here x) at t = 50.
TEST(Published, ThreeVortices) {
  std::ifstream file(lockstep::test::data_folder() / "flow/three_vortices_ux_64.txt");
  if (!file) GTEST_SKIP() << "no three_vortices_ux_64.txt in the test data";
  std::vector<double> expected(4096);
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 64; ++j) file >> expected[size_t(j * 64 + i)];
  ASSERT_TRUE(file);
  const Model model{.grid = {64, 64}, .viscosity = 1e-3};
  const Array w = initial_field(model.grid, Initial::vortices);
  auto flow = test::started(model, {Integrator::rk4, 0.025}, w.as<double>());
  test::run(flow, 2000);
  const Modes modes = modes_of(model);
  reference::Spectrum u = flow.spectrum();
  for (int64_t row = 0; row < modes.rows(); ++row)
    for (int64_t ix = 0; ix < modes.columns(); ++ix) {
      const double iy = double(modes.iy(row)), k2 = double(ix * ix) + iy * iy;
      u[size_t(row * modes.columns() + ix)] *= reference::Complex(0, k2 > 0 ? iy / k2 : 0);
    }
  EXPECT_LT(test::relative_l2(reference::Transform(modes).inverse(u), expected), 1e-4);
}

// The decay of one eigenfunction: exp(-2 nu t) up to RK2's own error, (1 + z + z^2 / 2)^n.
TEST(Published, TaylorGreenDecaysAsHeunDoes) {
  const Model model{.grid = {64, 64}, .viscosity = 0.01};
  const Array w = initial_field(model.grid, Initial::taylor_green);
  auto flow = test::started(model, {Integrator::rk2, 0.01}, w.as<double>());
  test::run(flow, 1000);
  const double z = -2 * 0.01 * 0.01, theory = std::pow(1 + z + z * z / 2, 1000);
  auto exact = w.to(Storage::f64), heun = exact;
  for (double& value : exact.mutate<double>()) value *= std::exp(-2 * 0.01 * 10);
  for (double& value : heun.mutate<double>()) value *= theory;
  EXPECT_LT(test::relative_l2(flow.vorticity(), heun.as<double>()), 1e-12);
  EXPECT_NEAR(test::relative_l2(flow.vorticity(), exact.as<double>()), 1.334e-9, 0.01e-9);
}

// GeophysicalFlows, test_twodnavierstokes.jl: exact energy and enstrophy of two modes on a box of any shape.
TEST(Published, InvariantsOfTwoModes) {
  const Model model{.grid = {128, 126, 2 * kPi, 3 * kPi}, .viscosity = 0};
  const auto w = sampled(model.grid, [](double x, double y) {
    const double l = 2.0 / 3;
    return (4 + 4 * l * l) * std::sin(2 * x) * std::cos(2 * l * y) +
           (1 + 9 * l * l) * 2 * std::sin(x) * std::cos(3 * l * y);
  });
  const Budget b = test::started(model, {}, w).budget();
  EXPECT_NEAR(b.energy, 29.0 / 9, 1e-13);
  EXPECT_NEAR(b.enstrophy, 2701.0 / 162, 1e-12);
  EXPECT_NEAR(b.palinstrophy, 126277.0 / 1458, 1e-11);
}

// Lamb's dipole moves at its own speed: its momentum's centre after t = L / U / 4.
TEST(Published, LambDipoleMoves) {
  const Model model{.grid = {128, 128}, .viscosity = 0};
  const double radius = 0.7, speed = 1, k = 3.8317059702075125 / radius;
  const auto w = sampled(model.grid, [&](double x, double y) {
    const double a = x - kPi, b = y - kPi, r = std::hypot(a, b);
    if (r >= radius || r == 0) return 0.0;
    return -2 * speed * k * std::cyl_bessel_j(1, k * r) / std::cyl_bessel_j(0, k * radius) * (b / r);
  });
  const auto centre = [&](const std::vector<double>& field) {  // phase of the first mode of w^2
    reference::Complex sum;
    for (size_t p = 0; p < field.size(); ++p)
      sum += std::polar(field[p] * field[p], double(p % 128) * model.grid.dx());
    return std::arg(sum);
  };
  auto flow = test::started(model, {Integrator::rk4, 0.01}, w);
  const double from = centre(flow.vorticity());
  test::run(flow, 60);
  const double moved = std::remainder(centre(flow.vorticity()) - from, 2 * kPi);
  EXPECT_NEAR(std::abs(moved), speed * 0.6, 0.03);  // the images of the periodic box slow it by some per cent
}

}  // namespace
}  // namespace lockstep::flow
