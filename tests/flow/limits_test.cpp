// Limits of stability from the integrators' own recurrences, and initial fields from the formulas of their papers.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "flows.hpp"
#include "lockstep/flow.hpp"

namespace lockstep::flow {
namespace {

using Complex = std::complex<double>;

/// Growth of y' = lambda y over a step of z = lambda dt, by the scheme itself; of ab3 over 4000 steps, as a mean.
double growth(Integrator integrator, Complex z) {
  const Complex one = 1;
  switch (integrator) {
    case Integrator::rk2: return std::abs(one + z + z * z / 2.0);
    case Integrator::ssprk3: return std::abs(one + z + z * z / 2.0 + z * z * z / 6.0);
    case Integrator::rk4:
    case Integrator::etdrk4: return std::abs(one + z + z * z / 2.0 + z * z * z / 6.0 + z * z * z * z / 24.0);
    case Integrator::ab3: break;
  }
  Complex y = 1, before = std::exp(-z), first = std::exp(-2.0 * z);
  double logarithm = 0;
  for (int k = 0; k < 4000; ++k) {
    const Complex next = y + z * (23.0 * y - 16.0 * before + 5.0 * first) / 12.0;
    const double size = std::abs(next);
    logarithm += k >= 2000 ? std::log(size / std::abs(y)) : 0;
    first = before / size, before = y / size, y = next / size;
  }
  return std::exp(logarithm / 2000);
}

/// Largest |z| along `direction` up to which no step grows by more than `slack`.
double reach(Integrator integrator, Complex direction, double slack) {
  double z = 0;
  while (z < 4 && growth(integrator, (z + 1e-3) * direction) <= 1 + slack) z += 1e-3;
  return z;
}

// Fourier modes with the largest kept wavenumber K move by i u K dt a step: cfl K dx at the limit is the reach along the
// imaginary axis. rk2 has none; its limit is where it grows by an eighth a step.
TEST(Limits, AreThoseOfTheSchemesAmplification) {
  Model model{.grid = {60, 60}, .viscosity = 0};
  const double furthest = 19 * 2 * std::numbers::pi / 60;  // K dx: (60 - 1) / 3 modes are kept
  for (const Integrator integrator :
       {Integrator::ssprk3, Integrator::rk4, Integrator::ab3, Integrator::etdrk4}) {
    SCOPED_TRACE(name(integrator));
    EXPECT_NEAR(cfl_limit(model, integrator) * furthest, reach(integrator, {0, 1}, 1e-6), 0.01);
  }
  EXPECT_NEAR(cfl_limit(model, Integrator::rk2) * furthest,
              reach(Integrator::rk2, {0, 1}, std::sqrt(1.25) - 1), 0.01);
  model.dealias = Dealias::none;
  EXPECT_NEAR(cfl_limit(model, Integrator::rk4) * 29 * 2 * std::numbers::pi / 60, std::sqrt(8.0), 1e-9);
}

// Damping of the strongest damped mode: nu K^2 + drag + hyperviscosity, at the corner of the kept ones, or hypoviscosity at
// the first.
TEST(Limits, OfLinearTermsAreThoseOfTheNegativeAxis) {
  const double k2 = 2 * 19 * 19;
  for (const Integrator integrator :
       {Integrator::rk2, Integrator::ssprk3, Integrator::rk4, Integrator::ab3}) {
    SCOPED_TRACE(name(integrator));
    const double real = reach(integrator, {-1, 0}, 1e-9);
    const auto limit = [&](Model model) {
      model.grid = {60, 60};
      return linear_dt_limit(model, integrator);
    };
    EXPECT_NEAR(limit({.viscosity = 0.01}) * 0.01 * k2, real, 0.02);
    EXPECT_NEAR(limit({.viscosity = 0, .drag = 3}) * 3, real, 0.02);
    EXPECT_NEAR(limit({.viscosity = 0, .hyper_viscosity = 1e-5, .hyper_power = 2}) * 1e-5 * k2 * k2, real,
                0.02);
    EXPECT_NEAR(limit({.viscosity = 0, .hypo_viscosity = 2, .hypo_power = 3}) * 2, real, 0.02);
    // Rossby waves: the fastest of frequency beta / kx at ky = 0, kx = 1.
    if (integrator != Integrator::rk2) {
      EXPECT_NEAR(limit({.viscosity = 0, .beta = 5}) * 5, reach(integrator, {0, 1}, 1e-6), 0.01);
    }
  }
  EXPECT_TRUE(std::isinf(linear_dt_limit({.grid = {60, 60}, .viscosity = 1, .beta = 1}, Integrator::etdrk4)));
}

/// Sums of |w_k|^2 over k of a kind, by the discrete sum itself.
double power_at(const Array& w, int kx, int ky) {
  const int64_t n = w.size(0);
  Complex sum = 0;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i)
      sum +=
          w.at<double>(j, i) * std::polar(1.0, -2 * std::numbers::pi * double(kx * i + ky * j) / double(n));
  return std::norm(sum) / std::pow(double(n), 4);
}

// McWilliams 1984: |psi_k|^2 proportional to 1 / (k (1 + (k/6)^4)) a ring, 2 pi k modes of it: the energy of a mode,
// k^2 |psi_k|^2, is proportional to 1 / (1 + (k/6)^4); the whole is 1/2.
TEST(InitialFields, McWilliamsHasItsSpectrum) {
  const Array w = initial_field({64, 64}, Initial::mcwilliams, 5);
  const auto energy = [&](int kx, int ky) { return power_at(w, kx, ky) / double(kx * kx + ky * ky); };
  const auto formula = [](double k) { return 1 / (1 + std::pow(k / 6, 4)); };
  const double first = energy(1, 0);
  for (const auto& [kx, ky] : {std::pair{0, 2}, {3, 4}, {6, 0}, {-6, 8}, {12, 5}, {0, 20}})
    EXPECT_NEAR(energy(kx, ky) / first / (formula(std::hypot(kx, ky)) / formula(1)), 1, 1e-10)
        << kx << " " << ky;
  // The whole is that of all modes, also of those that this grid does not keep; beyond 300 is 0.03 % of it.
  double whole = 0;
  for (int ky = -300; ky <= 300; ++ky)
    for (int kx = -300; kx <= 300; ++kx)
      if (kx != 0 || ky != 0) whole += 0.5 * first * formula(std::hypot(kx, ky)) / formula(1);
  EXPECT_NEAR(whole, 0.5, 2e-3);
}

// A Gaussian of k / 6 in the amplitude of vorticity, of variance 1.
TEST(InitialFields, NoiseHasItsSpectrumAndUnitVariance) {
  const Array w = initial_field({128, 128}, Initial::noise, 5);
  double squares = 0;
  for (const double v : w.as<double>()) squares += v * v;
  EXPECT_NEAR(squares / (128 * 128), 1, 1e-12);
  for (const auto& [kx, ky] : {std::pair{6, 0}, {-3, 4}, {0, 9}})
    EXPECT_NEAR(power_at(w, kx, ky) / power_at(w, 1, 0), std::exp(-2 * (kx * kx + ky * ky - 1) / 36.0),
                1e-10);
}

// Bell, Colella and Glaz 1989 on (0, 2 pi)^2: u = tanh((y - pi/2) / rho) below pi, tanh((3 pi/2 - y) / rho) above, v =
// 0.05 sin x, rho = pi / 15; w = v_x - u_y by differences of these.
TEST(InitialFields, ShearIsTheCurlOfItsVelocity) {
  const int n = 32;
  const Array w = initial_field({n, n}, Initial::shear);
  constexpr double kPi = std::numbers::pi, rho = kPi / 15, h = 1e-5;
  const auto u = [&](double y) { return std::tanh((y <= kPi ? y - kPi / 2 : 3 * kPi / 2 - y) / rho); };
  for (int j = 1; j < n; ++j)
    for (int i = 0; i < n; ++i) {
      if (j == n / 2) continue;  // the kink
      const double x = 2 * kPi * i / n, y = 2 * kPi * j / n;
      const double expected =
          0.05 * (std::sin(x + h) - std::sin(x - h)) / (2 * h) - (u(y + h) - u(y - h)) / (2 * h);
      EXPECT_NEAR(w.at<double>(j, i), expected, 1e-6) << j << " " << i;
    }
}

}  // namespace
}  // namespace lockstep::flow
