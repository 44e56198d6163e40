// Each term of the right-hand side against what it must do to the field, to energy and to enstrophy.
#include <gtest/gtest.h>

#include "flows.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {
namespace {

using reference::Complex;
using reference::Field;
using reference::Spectrum;
using test::sampled;

/// Rates of energy and enstrophy that a derivative of the vorticity means.
Budget rates(const Model& model, const Spectrum& w, const Spectrum& change) {
  const Modes modes = modes_of(model);
  Budget b;
  for (int64_t row = 0; row < modes.rows(); ++row)
    for (int64_t ix = 0; ix < modes.columns(); ++ix) {
      const double kx = 2 * kPi / model.grid.lx * double(ix),
                   ky = 2 * kPi / model.grid.ly * double(modes.iy(row));
      const auto at = size_t(row * modes.columns() + ix);
      const double z = (ix > 0 ? 2 : 1) * (std::conj(w[at]) * change[at]).real();
      b.enstrophy += z;
      if (kx != 0 || ky != 0) b.energy += z / (kx * kx + ky * ky);
    }
  return b;
}

Budget rates(const Model& model, const Field& field) {
  const auto flow = test::started(model, {}, field);
  return rates(model, flow.spectrum(), flow.right_hand_side(flow.spectrum()));
}

/// Mean of f(S11, S12, |grad w|) and of w nu_t lap w for nu_t = f.
struct Means {
  double work = 0, simple = 0;
};
Means eddy_means(const Model& model, const Field& field,
                 const std::function<double(double, double, double)>& nu_t) {
  const reference::Transform transform(modes_of(model));
  const Modes& modes = transform.modes();
  const Spectrum w = test::started(model, {}, field).spectrum();
  const auto derived = [&](const std::function<Complex(double, double)>& factor) {
    Spectrum r = w;
    for (int64_t row = 0; row < modes.rows(); ++row)
      for (int64_t ix = 0; ix < modes.columns(); ++ix)
        r[size_t(row * modes.columns() + ix)] *=
            row + ix == 0 ? 0 : factor(double(ix), double(modes.iy(row)));
    return transform.inverse(r);
  };
  const Field s11 = derived([](double x, double y) { return -x * y / (x * x + y * y); });
  const Field s12 = derived([](double x, double y) { return (x * x - y * y) / 2 / (x * x + y * y); });
  const Field wx = derived([](double x, double) { return Complex(0, x); });
  const Field wy = derived([](double, double y) { return Complex(0, y); });
  const Field lap = derived([](double x, double y) { return -x * x - y * y; });
  const Field own = transform.inverse(w);
  Means m;
  for (size_t k = 0; k < s11.size(); ++k) {
    const double nu = nu_t(s11[k], s12[k], std::hypot(wx[k], wy[k])) / double(s11.size());
    m.work += nu * 4 * (s11[k] * s11[k] + s12[k] * s12[k]);
    m.simple += nu * own[k] * lap[k];
  }
  return m;
}

TEST(Terms, AdvectionOfTwoModes) {
  // psi = sin(2 k x) cos(2 l y) + 2 sin(k x) cos(3 l y): u . grad w by hand, with viscosity, drag and beta.
  Model model{.grid = {32, 36, 2 * kPi, 3 * kPi}, .viscosity = 0.02, .drag = 0.3, .beta = 0.7};
  const double l = 2.0 / 3, a = 4 + 4 * l * l, b = 1 + 9 * l * l;
  const auto w = [&](double x, double y) {
    return a * std::sin(2 * x) * std::cos(2 * l * y) + 2 * b * std::sin(x) * std::cos(3 * l * y);
  };
  const auto expected = [&](double x, double y) {
    const double first = std::sin(2 * x) * std::cos(2 * l * y),
                 second = 2 * std::sin(x) * std::cos(3 * l * y);
    const double fx = 2 * std::cos(2 * x) * std::cos(2 * l * y),
                 fy = -2 * l * std::sin(2 * x) * std::sin(2 * l * y);
    const double gx = 2 * std::cos(x) * std::cos(3 * l * y), gy = -6 * l * std::sin(x) * std::sin(3 * l * y);
    const double u = fy + gy, v = -(fx + gx);
    return -u * (a * fx + b * gx) - v * (a * fy + b * gy) - 0.02 * (a * a * first + b * b * second) -
           0.3 * (a * first + b * second) - 0.7 * v;
  };
  for (const Dealias dealias : {Dealias::two_thirds, Dealias::padded, Dealias::none})
    for (const Advection advection : {Advection::stress, Advection::flux}) {
      model.dealias = dealias;
      model.advection = advection;
      const auto flow = test::started(model, {}, sampled(model.grid, w));
      const Modes modes = modes_of(model.grid, dealias);
      Modes points = modes;
      points.points_x = 32, points.points_y = 36;
      const Field got = reference::Transform(points).inverse(flow.right_hand_side(flow.spectrum()));
      EXPECT_LT(test::relative_l2(got, sampled(model.grid, expected)), 1e-12) << int(dealias);
    }
}

TEST(Terms, DealiasingDropsAliasedTriads) {
  // Modes 20 and 15 along x make 35, which 64 points take for -29.
  for (const Dealias dealias : {Dealias::two_thirds, Dealias::padded, Dealias::none}) {
    const Model model{.grid = {64, 64}, .viscosity = 0, .dealias = dealias};
    const auto flow = test::started(model, {}, sampled(model.grid, [](double x, double y) {
                                      return std::sin(20 * x + y) + std::cos(15 * x - 2 * y);
                                    }));
    const Spectrum n = flow.right_hand_side(flow.spectrum());
    const Modes modes = modes_of(model);
    double true_modes = 0, others = 0;
    for (int64_t row = 0; row < modes.rows(); ++row)
      for (int64_t ix = 0; ix < modes.columns(); ++ix) {
        const double size = std::abs(n[size_t(row * modes.columns() + ix)]);
        (ix == 5 && modes.iy(row) == 3 ? true_modes : others) += size;
      }
    EXPECT_GT(true_modes, 1e-3);
    if (dealias == Dealias::none)
      EXPECT_GT(others, 1e-3);
    else
      EXPECT_LT(others, 1e-12);  // 2000 modes of rounding
  }
}

TEST(Terms, AdvectionKeepsEnergyAndEnstrophy) {
  const Model model{.grid = {64, 48, 2 * kPi, 5}, .viscosity = 0};
  const Budget b = rates(model, test::smooth(model.grid));
  EXPECT_NEAR(b.energy, 0, 1e-14);
  EXPECT_NEAR(b.enstrophy, 0, 1e-13);
  const Array w = initial_field({64, 64}, Initial::mcwilliams, 3);
  auto flow = test::started({.grid = {64, 64}, .viscosity = 0}, {Integrator::rk4, 0.005}, w.as<double>());
  const Budget from = flow.budget();
  test::run(flow, 60);
  EXPECT_NEAR(flow.budget().energy / from.energy, 1, 5e-8);
  EXPECT_NEAR(flow.budget().enstrophy / from.enstrophy, 1, 1e-6);
}

TEST(Terms, LinearDamping) {
  const Model model{.grid = {32, 32},
                    .viscosity = 0.1,
                    .drag = 0.2,
                    .hyper_viscosity = 1e-3,
                    .hyper_power = 2,
                    .hypo_viscosity = 0.4,
                    .hypo_power = 1};
  const auto w = sampled(model.grid, [](double x, double y) { return std::cos(3 * x - y); });  // k^2 = 10
  const double damping = 0.1 * 10 + 0.2 + 1e-3 * 100 + 0.4 / 10;
  EXPECT_NEAR(rates(model, w).enstrophy, -2 * damping * 0.25, 1e-13);
}

TEST(Terms, EddyViscosityDissipatesItsWork) {
  const double cs = 0.2, cl = 0.5;
  for (const bool leith : {false, true})
    for (const ClosureForm form : {ClosureForm::divergence, ClosureForm::simple}) {
      const Model model{.grid = {48, 48},
                        .viscosity = 0,
                        .closure = leith ? Closure::leith : Closure::smagorinsky,
                        .constant = leith ? cl : cs,
                        .form = form};
      const auto w = test::smooth(model.grid);
      const double d = model.grid.dx();
      const Means means = eddy_means(model, w, [&](double s11, double s12, double gradient) {
        return leith ? std::pow(cl * d, 3) * gradient : 2 * cs * cs * d * d * std::hypot(s11, s12);
      });
      const Budget b = rates(model, w);
      if (form == ClosureForm::divergence)
        EXPECT_NEAR(b.energy, -means.work, 1e-13 * means.work + 1e-15);
      else
        EXPECT_NEAR(b.enstrophy, means.simple, std::abs(means.simple) * 1e-12);
    }
}

TEST(Terms, DynamicCoefficientHasNoUnits) {
  // Random phases have no transfer; after a while they have become turbulence.
  const Array random = initial_field({64, 64}, Initial::mcwilliams, 5);
  auto spun =
      test::started({.grid = {64, 64}, .viscosity = 1e-3}, {Integrator::rk4, 0.01}, random.as<double>());
  test::run(spun, 150);
  const Field turbulence = spun.vorticity();
  for (const Closure closure : {Closure::dynamic_smagorinsky, Closure::dynamic_leith})
    for (const Averaging averaging : {Averaging::global, Averaging::local}) {
      const auto coefficient = [&](double speed, double size) {
        const Model model{.grid = {64, 64, 2 * kPi * size, 2 * kPi * size},
                          .viscosity = 0,
                          .closure = closure,
                          .averaging = averaging};
        auto w = turbulence;
        for (double& value : w) value *= speed / size;
        const auto flow = test::started(model, {}, w);
        const Budget b = rates(model, flow.spectrum(), flow.right_hand_side(flow.spectrum()));
        EXPECT_LE(b.energy, 1e-14);
        return flow.dynamic_coefficient();
      };
      const double c = coefficient(1, 1);
      EXPECT_GT(c, 1e-4);
      EXPECT_LT(c, 1);
      EXPECT_NEAR(coefficient(3, 1), c, 1e-9 * c);
      EXPECT_NEAR(coefficient(1, 2.5), c, 1e-9 * c);
    }
}

/// A linear operator on the modes |k| <= 5 of 12 x 12 points, as sums over pairs of points: `symbol` is even and real, or
/// odd and imaginary.
Field by_points(const Field& f, const std::function<Complex(double, double)>& symbol) {
  constexpr int kPoints = 12, kMost = 5;
  Field weights(kPoints * kPoints), result(f.size());
  for (int y = 0; y < kPoints; ++y)
    for (int x = 0; x < kPoints; ++x)
      for (int ky = -kMost; ky <= kMost; ++ky)
        for (int kx = -kMost; kx <= kMost; ++kx)
          weights[size_t(y * kPoints + x)] +=
              (symbol(kx, ky) * std::polar(1.0, 2 * kPi * (kx * x + ky * y) / kPoints)).real() /
              (kPoints * kPoints);
  for (int p = 0; p < kPoints * kPoints; ++p)
    for (int q = 0; q < kPoints * kPoints; ++q) {
      const int y = (p / kPoints - q / kPoints + kPoints) % kPoints,
                x = (p % kPoints - q % kPoints + kPoints) % kPoints;
      result[size_t(p)] += weights[size_t(y * kPoints + x)] * f[size_t(q)];
    }
  return result;
}

/// <h . M> / <M . M> of Germano's identity as docs/flow.md has it.
double germano_coefficient(const Field& w, bool leith) {
  const double width = 2 * kPi / 12, power = leith ? 3 : 2;
  const auto over = [](double x, double y) { return x == 0 && y == 0 ? 0 : 1 / (x * x + y * y); };
  const auto filtered = [&](const Field& f) {
    return by_points(f, [&](double x, double y) { return std::exp(-(x * x + y * y) * width * width / 6); });
  };
  const auto product = [](Field a, const Field& b) {
    for (size_t k = 0; k < a.size(); ++k) a[k] *= b[k];
    return a;
  };
  const auto length = [](const Field& a, const Field& b, double factor) {
    Field r(a.size());
    for (size_t k = 0; k < r.size(); ++k) r[k] = factor * std::hypot(a[k], b[k]);
    return r;
  };
  const Field u = by_points(w, [&](double x, double y) { return Complex(0, y * over(x, y)); });
  const Field v = by_points(w, [&](double x, double y) { return Complex(0, -x * over(x, y)); });
  const Field s11 = by_points(w, [&](double x, double y) { return -x * y * over(x, y); });
  const Field s12 = by_points(w, [&](double x, double y) { return (x * x - y * y) / 2 * over(x, y); });
  const Field wx = by_points(w, [](double x, double) { return Complex(0, x); });
  const Field wy = by_points(w, [](double, double y) { return Complex(0, y); });
  const Field rate = leith ? length(wx, wy, 1) : length(s11, s12, 2);
  const Field test_rate =
      leith ? length(filtered(wx), filtered(wy), 1) : length(filtered(s11), filtered(s12), 2);
  double lm = 0, mm = 0;
  for (const auto& [velocity, gradient] : {std::pair{&u, &wx}, {&v, &wy}}) {
    const Field flux = filtered(product(*velocity, w)), resolved = product(filtered(*velocity), filtered(w)),
                own = filtered(product(rate, *gradient)), test = product(test_rate, filtered(*gradient));
    for (size_t k = 0; k < w.size(); ++k) {
      const double m = std::pow(width, power) * own[k] - std::pow(2 * width, power) * test[k];
      lm += (flux[k] - resolved[k]) * m;
      mm += m * m;
    }
  }
  return lm / mm;
}

TEST(Terms, DynamicCoefficientIsGermanos) {
  for (const bool leith : {false, true}) {
    const Model model{.grid = {12, 12},
                      .viscosity = 0,
                      .closure = leith ? Closure::dynamic_leith : Closure::dynamic_smagorinsky,
                      .dealias = Dealias::none};
    auto w = test::sampled(model.grid, [](double x, double y) {
      return std::sin(x + 2 * y) + 0.7 * std::cos(2 * x + y + 0.4) + 0.5 * std::cos(3 * x + 3 * y + 1.1) +
             0.3 * std::sin(3 * x - 2 * y + 1) + 0.4 * std::cos(x - y + 0.3);
    });
    const double c = germano_coefficient(w, leith);
    if (c < 0)
      for (double& value : w) value = -value;  // the coefficient's sign follows
    const auto flow = test::started(model, {}, w);
    flow.right_hand_side(flow.spectrum());
    EXPECT_GT(std::abs(c), 1e-4);
    EXPECT_NEAR(flow.dynamic_coefficient() / std::abs(c), 1, 1e-11) << leith;
  }
}

TEST(Terms, KolmogorovForcing) {
  const Model model{
      .grid = {32, 32, 2 * kPi, kPi}, .viscosity = 0, .forcing = {ForcingKind::kolmogorov, 3, 0.5}};
  const auto flow = test::started(model, {}, std::vector<double>(1024));
  const Field got = reference::Transform(modes_of(model)).inverse(flow.right_hand_side(flow.spectrum()));
  const auto curl = sampled(model.grid, [](double, double y) { return -0.5 * 6 * std::cos(6 * y); });
  EXPECT_LT(test::relative_l2(got, curl), 1e-14);
}

TEST(Terms, StochasticForcingPutsInItsEnergy) {
  Model model{.grid = {32, 32}, .viscosity = 0, .forcing = {ForcingKind::stochastic, 5, 0.2, 11}};
  auto flow = test::started(model, {Integrator::rk4, 0.01}, std::vector<double>(1024));
  test::run(flow, 1);
  EXPECT_NEAR(flow.budget().energy, 0.2 * 0.01, 1e-15);
  double sum = 0;  // over 24 seeds, each 20 steps from rest: the standard error is about 3 %
  for (uint64_t seed = 0; seed < 24; ++seed) {
    model.forcing.seed = seed;
    auto other = test::started(model, {Integrator::rk2, 0.01}, std::vector<double>(1024));
    test::run(other, 20);
    sum += other.budget().energy / 24;
  }
  EXPECT_NEAR(sum / (0.2 * 0.2), 1, 0.12);
}

TEST(Terms, SpectraAddUpAndFluxesVanishAtTheEnd) {
  const Model model{.grid = {48, 64, 2 * kPi, 4 * kPi}};
  const auto flow = test::started(model, {}, test::smooth(model.grid));
  const reference::Spectra s = flow.spectra();
  double energy = 0, enstrophy = 0;
  for (size_t j = 0; j < s.energy.size(); ++j) energy += s.energy[j], enstrophy += s.enstrophy[j];
  EXPECT_NEAR(energy, flow.budget().energy, 1e-13);
  EXPECT_NEAR(enstrophy, flow.budget().enstrophy, 1e-13);
  EXPECT_NEAR(s.energy_flux.back(), 0, 1e-13);
  EXPECT_NEAR(s.enstrophy_flux.back(), 0, 1e-13);
}

TEST(Terms, BadModelsAreNamed) {
  const auto refused = [](const Model& model, const Stepping& stepping, const std::string& word) {
    try {
      check(model, stepping);
      ADD_FAILURE() << "not refused: " << word;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
  };
  refused({.grid = {2, 64}}, {}, "64 x 2");
  refused({.viscosity = -1}, {}, "viscosity");
  refused({.viscosity = std::nan("")}, {}, "viscosity");
  refused({}, {Integrator::rk4, -0.1}, "dt");
  refused({}, {Integrator::rk4, std::nan("")}, "dt");
  refused({.viscosity = 0.1}, {Integrator::rk2, 0.1}, "unstable");
  refused({}, {Integrator::rk4, 0.1, 50}, "cfl = 50");
  refused({}, {Integrator::ab3, 0.001, 0.1}, "ab3");
  EXPECT_NO_THROW(check({.viscosity = 0.1}, {Integrator::etdrk4, 0.1}));
}

}  // namespace
}  // namespace lockstep::flow
