// Against theory beyond single terms: a manufactured solution, growth rates of unstable shear, the directions of
// cascades.
#include <gtest/gtest.h>

#include <array>

#include "flows.hpp"
#include "io/test_data.hpp"
#include "lockstep/flow/run.hpp"

namespace lockstep::flow {
namespace {

/// The sum of three parts of different |k|, so that advection is not 0, with amplitudes that change in time.
struct Manufactured {
  double viscosity, drag, beta;

  /// psi of a part with its derivatives, and amplitude with its rate of change.
  struct Part {
    double k2, value, x, y, amplitude, rate;
  };
  std::array<Part, 3> parts(double x, double y, double t) const {
    return {Part{5, std::sin(2 * x) * std::cos(y), 2 * std::cos(2 * x) * std::cos(y),
                 -std::sin(2 * x) * std::sin(y), 0.4 + 0.2 * std::sin(t), 0.2 * std::cos(t)},
            Part{2, std::cos(x) * std::sin(y), -std::sin(x) * std::sin(y), std::cos(x) * std::cos(y),
                 0.3 * std::cos(2 * t), -0.6 * std::sin(2 * t)},
            Part{8, std::cos(2 * x + 2 * y), -2 * std::sin(2 * x + 2 * y), -2 * std::sin(2 * x + 2 * y),
                 0.1 * std::exp(-t / 2), -0.05 * std::exp(-t / 2)}};
  }
  double vorticity(double x, double y, double t) const {
    double w = 0;
    for (const Part& p : parts(x, y, t)) w += p.k2 * p.amplitude * p.value;
    return w;
  }
  /// u . grad w, by hand.
  double jacobian(double x, double y, double t) const {
    double u = 0, v = 0, wx = 0, wy = 0;
    for (const Part& p : parts(x, y, t)) {
      u += p.amplitude * p.y;
      v -= p.amplitude * p.x;
      wx += p.k2 * p.amplitude * p.x;
      wy += p.k2 * p.amplitude * p.y;
    }
    return u * wx + v * wy;
  }
  double source(double x, double y, double t) const {
    double rest = 0;
    for (const Part& p : parts(x, y, t))
      rest += p.k2 * p.rate * p.value + (viscosity * p.k2 + drag) * p.k2 * p.amplitude * p.value -
              beta * p.amplitude * p.x;
    return rest + jacobian(x, y, t);
  }
};

TEST(Theory, OrdersWithAManufacturedSolution) {
  const Manufactured exact{0.02, 0.1, 0.5};
  const Model model{.grid = {16, 16}, .viscosity = 0.02, .drag = 0.1, .beta = 0.5};
  const auto at = [&](double t) {
    return test::sampled(model.grid, [&](double x, double y) { return exact.vorticity(x, y, t); });
  };
  double advected = 0;
  for (const double j :
       test::sampled(model.grid, [&](double x, double y) { return exact.jacobian(x, y, 0.3); }))
    advected = std::max(advected, std::abs(j));
  EXPECT_GT(advected, 0.5);  // of a source of about 3
  const reference::Transform transform(modes_of(model));
  const auto error = [&](Integrator integrator, int64_t steps) {
    auto flow = test::started(model, {integrator, 1.0 / double(steps)}, at(0));
    flow.set_source([&](double t) {
      return transform.forward(
          test::sampled(model.grid, [&](double x, double y) { return exact.source(x, y, t); }));
    });
    test::run(flow, steps);
    return test::relative_l2(flow.vorticity(), at(1));
  };
  const std::pair<Integrator, double> orders[] = {{Integrator::rk2, 2},
                                                  {Integrator::ssprk3, 3},
                                                  {Integrator::rk4, 4},
                                                  {Integrator::etdrk4, 4},
                                                  {Integrator::ab3, 2}};  // Euler's first step
  for (const auto& [integrator, order] : orders) {
    const double coarse = error(integrator, 16), fine = error(integrator, 32);
    EXPECT_NEAR(std::log2(coarse / fine), order, 0.35) << name(integrator) << ' ' << coarse << ' ' << fine;
    EXPECT_LT(fine, order == 4 ? 1e-5 : 1e-2) << name(integrator);
  }
}

/// The mean rate at which the modes ix = 1 grow from `begin` to `end`.
double growth(const Model& model, double dt, const std::vector<double>& w, double begin, double end) {
  Solver solver(Device::open("cpu"), model, {Integrator::rk4, dt}, Storage::f64);
  solver.set_vorticity(Array::of(std::vector<double>(w), {model.grid.ny, model.grid.nx}));
  const auto size = [&](double until) {
    solver.advance(std::llround(until / dt) - solver.steps()[0]);
    const Array spectrum = solver.spectrum();
    double sum = 0;
    for (int64_t row = 0; row < spectrum.size(1); ++row)
      sum += std::pow(spectrum.at<double>(0, row, 1, 0), 2) + std::pow(spectrum.at<double>(0, row, 1, 1), 2);
    return std::sqrt(sum);
  };
  const double first = size(begin);
  return std::log(size(end) / first) / (end - begin);
}

// u = tanh(y / d): Rayleigh's equation of two layers in Fourier modes, solved for its eigenvalues by another
// program. Michalke 1964 has the largest rate of a single layer, 0.1897 U / d at k d = 0.4446.
TEST(Theory, ShearLayersGrowAsInLinearTheory) {
  const double width = 0.1;
  for (const auto& [wavenumber, rate] : {std::pair{0.4446, 0.18981}, {0.2, 0.13963}, {0.7, 0.15037}}) {
    const Model model{.grid = {16, 256, 2 * kPi * width / wavenumber, 2 * kPi}, .viscosity = 0};
    const auto w = test::sampled(model.grid, [&](double x, double y) {
      const auto layer = [&](double at) { return 1 / (width * std::pow(std::cosh((y - at) / width), 2)); };
      const double a = layer(kPi / 2), b = layer(3 * kPi / 2);
      return -a + b + 1e-9 * (a + b) * std::cos(wavenumber / width * x);
    });
    EXPECT_NEAR(growth(model, 0.02, w, 5, 8) * width, rate, 0.002 * rate) << wavenumber;
  }
}

// Chandler and Kerswell 2013, n = 4: the laminar flow of the force sin 4y, nu = 1 / Re, is unstable beyond
// Re = 9.9669.
TEST(Theory, KolmogorovFlowLosesItsStabilityWhereItShould) {
  const auto rate = [](double reynolds) {
    Model model{.grid = {16, 32}, .viscosity = 1 / reynolds};
    model.forcing = {ForcingKind::kolmogorov, 4, 1};
    const auto w = test::sampled(model.grid, [&](double x, double y) {
      return -reynolds / 4 * std::cos(4 * y) + 1e-7 * (std::cos(x + y) + std::sin(x) + std::cos(x - 2 * y));
    });
    return growth(model, 0.05, w, 60, 120);
  };
  const double below = rate(9.5), above = rate(10.4);
  EXPECT_LT(below, 0);
  EXPECT_GT(above, 0);
  EXPECT_NEAR(9.5 - below * 0.9 / (above - below), 9.9669, 0.02);
}

// Kraichnan 1967: forced in between, energy goes to large scales and enstrophy to small ones.
TEST(Theory, CascadesGoBothWays) {
  Model model{.grid = {128, 128}, .viscosity = 0, .forcing = {ForcingKind::stochastic, 14, 0.5, 2}};
  model.drag = 0.3;
  model.hyper_viscosity = 3e-12;
  model.hyper_power = 4;
  Solver solver(Device::open("cpu"), model, {Integrator::rk4, 4e-3}, Storage::f64, 1);
  solver.set_vorticity(initial_field(model.grid, Initial::noise, 1));
  solver.advance(1000);
  std::vector<double> energy, enstrophy;
  for (int k = 0; k < 10; ++k) {
    solver.advance(100);
    const Spectra s = solver.spectra()[0];
    energy.resize(s.energy_flux.size());
    enstrophy.resize(s.energy_flux.size());
    for (size_t j = 0; j < energy.size(); ++j) {
      energy[j] += s.energy_flux[j] / 10;
      enstrophy[j] += s.enstrophy_flux[j] / 10;
    }
  }
  for (size_t j = 6; j <= 12; ++j) EXPECT_LT(energy[j], -0.1 * 0.5) << j;
  for (size_t j = 16; j <= 24; ++j) EXPECT_GT(enstrophy[j], 0.3 * 0.5 * 14 * 14) << j;
  EXPECT_LT(std::abs(energy[20]), 0.3 * std::abs(energy[10]));
}

/// The same modes on n points a side.
Array on_grid(const Array& field, int64_t n) {
  const BoxGrid from{field.size(1), field.size(0)};
  const Modes few = modes_of(from, Dealias::two_thirds);
  Modes many = few;
  many.points_x = many.points_y = n;
  const auto values = field.as<double>();
  const auto spectrum = reference::Transform(few).forward({values.begin(), values.end()});
  return Array::of(reference::Transform(many).inverse(spectrum), {n, n});
}

// Filtered turbulence for two turnover times on its own points and on twice as many: where 64 points resolve the flow,
// spectra are the same within 10 % (bench/flow_statistics.py: ten turnover times, compared with 512 points).
TEST(Theory, FilteredTurbulenceHasTheSpectraOfAFinerGrid) {
  RunOptions options;
  options.initial = (lockstep::test::data_folder() / "flow/turbulence_ic_64.mat").string();
  if (!std::filesystem::exists(options.initial)) GTEST_SKIP() << "no turbulence_ic_64.mat in the test data";
  const Array field = load_initial(options);
  double square = 0;
  for (const double w : field.as<double>()) square += w * w / double(field.elements());
  const double time = 2 * 2 * kPi / std::sqrt(square);
  std::vector<std::vector<double>> spectra;
  for (const int64_t n : {64, 128}) {
    const Model model{.grid = {n, n}, .viscosity = 4e-3};
    const auto steps = int64_t(std::ceil(time * double(n) / 0.4));
    Solver solver(Device::open("cpu"), model, {Integrator::rk4, time / double(steps)}, Storage::f64);
    solver.set_vorticity(on_grid(field, n));
    solver.advance(steps);
    spectra.push_back(solver.spectra()[0].energy);
  }
  for (size_t k = 1; k <= 14; ++k) EXPECT_NEAR(spectra[0][k] / spectra[1][k], 1, 0.1) << k;
}

}  // namespace
}  // namespace lockstep::flow
