// Runs of many steps: equal bits on CPU and interpreter, and what decaying turbulence must do.
// LOCKSTEP_FLOW_STEPS sets the steps whose bits are compared (1000).
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "flows.hpp"
#include "lockstep/flow.hpp"

namespace lockstep::flow {
namespace {

Array spectrum_after(const Device& device, const Model& model, const Stepping& stepping, Storage storage,
                     int64_t steps) {
  Solver solver(device, model, stepping, storage);
  solver.set_vorticity(initial_field(model.grid, Initial::mcwilliams, 5));
  solver.advance(steps);
  return solver.spectrum();
}

// Every integrator, and every closure, on grids of whole transforms (8, 10) and of fused kernels (16).
TEST(FlowLongRuns, CpuAndInterpreterKeepTheSameBits) {
  const char* wanted = std::getenv("LOCKSTEP_FLOW_STEPS");
  const int64_t steps = wanted ? std::atoll(wanted) : 1000;
  const Device cpu = Device::open("cpu"), interp = Device::open("interp");
  struct Run {
    int64_t n;
    Integrator integrator;
    Closure closure;
    ClosureForm form;
    Averaging averaging;
    Storage storage;
  };
  constexpr auto kDivergence = ClosureForm::divergence;
  constexpr auto kGlobal = Averaging::global;
  const Run runs[] = {
      {16, Integrator::rk2, Closure::smagorinsky, kDivergence, kGlobal, Storage::f32},
      {16, Integrator::ssprk3, Closure::none, kDivergence, kGlobal, Storage::f64},
      {16, Integrator::ab3, Closure::none, kDivergence, kGlobal, Storage::f32},
      {16, Integrator::rk4, Closure::none, kDivergence, kGlobal, Storage::f64},
      {16, Integrator::etdrk4, Closure::none, kDivergence, kGlobal, Storage::f32},
      {8, Integrator::rk2, Closure::leith, kDivergence, kGlobal, Storage::f32},
      {8, Integrator::ab3, Closure::smagorinsky, ClosureForm::simple, kGlobal, Storage::f64},
      {10, Integrator::ab3, Closure::dynamic_smagorinsky, kDivergence, kGlobal, Storage::f64},
      {8, Integrator::ab3, Closure::dynamic_leith, kDivergence, kGlobal, Storage::f32},
      {8, Integrator::ab3, Closure::dynamic_smagorinsky, kDivergence, Averaging::local, Storage::f64},
  };
  for (const Run& r : runs) {
    Model model{.grid = {r.n, r.n},
                .viscosity = 1e-3,
                .closure = r.closure,
                .form = r.form,
                .averaging = r.averaging,
                .forcing = {ForcingKind::stochastic, 2, 0.05, 9},
                .drag = 0.05};
    const Stepping stepping{r.integrator, 2e-3};
    const Array a = spectrum_after(cpu, model, stepping, r.storage, steps),
                b = spectrum_after(interp, model, stepping, r.storage, steps);
    ASSERT_EQ(a.bytes(), b.bytes());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), size_t(a.bytes())), 0)
        << name(r.integrator) << ' ' << name(r.closure) << ' ' << r.n;
    EXPECT_FALSE(first_not_finite(a));
  }
}

// An eddy viscosity that is not negative and that the step resolves takes energy for any coefficient.
TEST(FlowLongRuns, LocalDynamicClosuresTakeEnergy) {
  for (const Closure closure : {Closure::dynamic_smagorinsky, Closure::dynamic_leith})
    for (const Integrator integrator : {Integrator::rk2, Integrator::rk4}) {
      const Model model{.grid = {32, 32}, .closure = closure, .averaging = Averaging::local};
      Solver solver(Device::open("cpu"), model, {integrator, 0.05, 0.5}, Storage::f64);
      solver.set_vorticity(initial_field(model.grid, Initial::noise, 3));
      double before = solver.budget()[0].energy;
      const double first = before;
      for (int block = 0; block < 20; ++block) {
        solver.advance(20);
        ASSERT_TRUE(solver.blown_up().empty());
        const double energy = solver.budget()[0].energy;
        ASSERT_LE(energy, before * (1 + 1e-6)) << name(closure) << ' ' << name(integrator) << ' ' << block;
        before = energy;
      }
      EXPECT_GT(before, 0.1 * first) << name(closure);
      EXPECT_GT(solver.times()[0], 1) << name(closure);
    }
}

// The steps of a run whose dt the eddy viscosity limits are the reference's.
TEST(FlowLongRuns, TheEddyViscosityLimitsSteps) {
  const Model model{.grid = {24, 20}, .closure = Closure::dynamic_leith, .averaging = Averaging::local};
  const Stepping stepping{Integrator::rk2, 0.2, 0.5};
  Array field(Storage::f64, {20, 24});  // white noise, whose smallest scales are strained most
  std::mt19937_64 random(5);
  for (double& w : field.mutate<double>()) w = std::uniform_real_distribution(-1.0, 1.0)(random);
  Solver solver(Device::open("cpu"), model, stepping, Storage::f64);
  solver.set_vorticity(field);
  auto flow = test::started(model, stepping, field.as<double>());
  solver.advance(3);
  test::run(flow, 3);
  EXPECT_NEAR(solver.times()[0], flow.time(), 1e-12);
  EXPECT_LT(test::relative_l2(solver.vorticity().as<double>(), flow.vorticity()), 1e-11);
  const double rate = flow.courant() / flow.dt();
  flow.step();
  EXPECT_LT(flow.dt(), 0.49 / rate) << "the speed alone would have given 0.5 / rate";
}

// McWilliams 1984: at small viscosity energy stays, enstrophy falls all the time.
TEST(FlowLongRuns, DecayKeepsEnergyAndLosesEnstrophy) {
  const Model model{.grid = {64, 64}, .viscosity = 5e-4};
  Solver solver(Device::open("cpu"), model, {Integrator::rk4, 5e-3}, Storage::f64);
  solver.set_vorticity(initial_field(model.grid, Initial::mcwilliams, 1));
  const Budget first = solver.budget()[0];
  EXPECT_NEAR(first.energy, 0.5, 0.03);  // 0.5 but for modes that this grid has not
  solver.record_moments(20);
  solver.advance(600);
  double enstrophy = first.enstrophy, energy = first.energy;
  for (const auto& row : solver.moments()) {
    EXPECT_LT(row[0].budget.enstrophy, enstrophy);
    EXPECT_LT(row[0].budget.energy, energy);
    EXPECT_LT(row[0].energy.all, 0);
    enstrophy = row[0].budget.enstrophy;
    energy = row[0].budget.energy;
  }
  EXPECT_GT(energy, 0.8 * first.energy);
  EXPECT_LT(enstrophy, 0.6 * first.enstrophy);
}

// The steady flow of a Kolmogorov force, u = A / (nu k^2) sin(k y): what it puts in, viscosity takes out.
TEST(FlowLongRuns, KolmogorovFlowIsSteady) {
  Model model{.grid = {16, 32}, .viscosity = 0.5};
  model.forcing = {ForcingKind::kolmogorov, 2, 0.8};
  Solver solver(Device::open("cpu"), model, {Integrator::etdrk4, 0.02}, Storage::f64);
  solver.set_vorticity(Array(Storage::f64, {32, 16}));
  solver.advance(2000);
  const Moment m = solver.moment()[0];
  const double u = 0.8 / (0.5 * 4);
  EXPECT_NEAR(m.budget.energy, u * u / 4, 1e-12);
  EXPECT_NEAR(m.max_u, u, 1e-12);
  EXPECT_NEAR(m.energy.forcing, 0.8 * u / 2, 1e-12);
  EXPECT_NEAR(m.energy.viscous, -m.energy.forcing, 1e-12);
  EXPECT_NEAR(m.energy.all, 0, 1e-12);
}

}  // namespace
}  // namespace lockstep::flow
