// The device solver: against the reference beyond the cases, ensembles, graphs, clocks, blow-ups, states.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "flow/les/evaluation.hpp"
#include "flow/les/fused.hpp"
#include "flows.hpp"
#include "lockstep/error.hpp"
#include "lockstep/flow/memory.hpp"

namespace lockstep::flow {
namespace {

const Device& cpu() {
  static const Device device = Device::open("cpu");
  return device;
}

Model turbulent() {
  return {.grid = {32, 24},
          .viscosity = 1e-3,
          .closure = Closure::smagorinsky,
          .forcing = {ForcingKind::stochastic, 4, 0.1, 3},
          .drag = 0.1};
}

Array members_of(const Model& model, int64_t members, uint64_t seed) {
  std::vector<double> all;
  for (int64_t m = 0; m < members; ++m) {
    const Array one = initial_field(model.grid, Initial::mcwilliams, seed + uint64_t(m));
    all.insert(all.end(), one.as<double>().begin(), one.as<double>().end());
  }
  return Array::of(std::move(all), {members, model.grid.ny, model.grid.nx});
}

void expect_same_bits(const Array& a, const Array& b) {
  ASSERT_EQ(a.bytes(), b.bytes());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), size_t(a.bytes())), 0);
}

// Memory that others wrote to may hold anything: a solver that was given no field is a fluid at rest.
TEST(FlowSolver, BeginsAtRest) {
  const Model model = turbulent();
  const Array rest = Array(Storage::f64, {model.grid.ny, model.grid.nx});
  for (const double cfl : {0.0, 0.5}) {
    const Stepping stepping{.integrator = Integrator::rk4, .dt = 5e-3, .cfl = cfl};
    for (int k = 0; k < 8; ++k) {  // returned to the pool, to be taken up again
      const Buffer used = cpu().allocate(Storage::i32, {1, k + 1});
      cpu().write(used, std::vector<int32_t>(size_t(k + 1), 0x5a5a5a5a).data(), used.bytes());
      cpu().synchronize();
    }
    Solver given(cpu(), model, stepping), none(cpu(), model, stepping);
    given.set_vorticity(rest);
    given.advance(12), none.advance(12);
    expect_same_bits(none.vorticity(), given.vorticity());
    EXPECT_EQ(none.steps(), given.steps());
    EXPECT_EQ(none.times(), given.times());
    EXPECT_TRUE(none.blown_up().empty());
  }
}

// 23 steps are two recorded blocks and three steps.
TEST(FlowSolver, FollowsTheReference) {
  const Model model = turbulent();
  const Array field = initial_field(model.grid, Initial::mcwilliams, 1);
  Solver solver(cpu(), model, {Integrator::rk4, 5e-3});
  solver.set_vorticity(field);
  solver.advance(23);
  auto flow = test::started(model, {Integrator::rk4, 5e-3}, field.as<double>());
  test::run(flow, 23);
  EXPECT_LT(test::relative_l2(solver.vorticity().as<double>(), flow.vorticity()), 1e-12);
  EXPECT_EQ(solver.steps()[0], 23);
  EXPECT_NEAR(solver.times()[0], 23 * 5e-3, 1e-15);
  const Budget got = solver.budget()[0], want = flow.budget();
  EXPECT_NEAR(got.energy / want.energy, 1, 1e-12);
  EXPECT_NEAR(got.enstrophy / want.enstrophy, 1, 1e-12);
  EXPECT_NEAR(got.palinstrophy / want.palinstrophy, 1, 1e-12);
  const Spectra s = solver.spectra()[0];
  const reference::Spectra r = flow.spectra();
  ASSERT_EQ(s.energy.size(), r.energy.size());
  EXPECT_LT(test::relative_l2(s.energy, r.energy), 1e-12);
  EXPECT_LT(test::relative_l2(s.energy_flux, r.energy_flux), 1e-10);
  EXPECT_LT(test::relative_l2(s.enstrophy_flux, r.enstrophy_flux), 1e-10);
  EXPECT_NEAR(solver.courant()[0], flow.courant(), 1e-12);
}

TEST(FlowSolver, MembersAreAsByThemselves) {
  for (const double cfl : {0.0, 0.4}) {
    Model model = turbulent();
    const Stepping stepping{Integrator::rk2, 1e-2, cfl};
    const Array fields = members_of(model, 3, 5);
    Solver all(cpu(), model, stepping, Storage::f32, 3);
    all.set_vorticity(fields);
    if (cfl > 0) all.set_end(0.2);
    all.advance(34);
    const Array together = all.vorticity();
    for (int64_t m = 0; m < 3; ++m) {
      Model own = model;
      own.forcing.seed += uint64_t(m);
      Solver one(cpu(), own, stepping, Storage::f32, 1);
      one.set_vorticity(fields[m].packed());
      if (cfl > 0) one.set_end(0.2);
      one.advance(17);
      one.advance(17);
      expect_same_bits(one.vorticity()[0].packed(), together[m].packed());
    }
  }
}

TEST(FlowSolver, StatesGoOnWithTheSameBits) {
  for (const Integrator integrator : {Integrator::ab3, Integrator::etdrk4}) {
    const Model model = turbulent();
    const Stepping stepping{integrator, 2e-3};
    Solver whole(cpu(), model, stepping), first(cpu(), model, stepping), second(cpu(), model, stepping);
    const Array field = initial_field(model.grid, Initial::noise, 2);
    for (Solver* s : {&whole, &first}) s->set_vorticity(field);
    whole.advance(24);
    first.advance(11);
    second.set_state(first.state());
    second.advance(13);
    first.advance(13);
    expect_same_bits(second.vorticity(), first.vorticity());
    expect_same_bits(second.vorticity(), whole.vorticity());
    EXPECT_EQ(second.steps()[0], 24);
  }
}

TEST(FlowSolver, CflSetsTheStepAndTheEnd) {
  const Model model{.grid = {32, 32}, .viscosity = 1e-3};
  Solver solver(cpu(), model, {Integrator::rk4, 0.1, 0.5}, Storage::f32);
  const Array field = initial_field(model.grid, Initial::mcwilliams, 1);
  solver.set_vorticity(field);
  solver.set_end(0.5);
  solver.advance(60);
  EXPECT_NEAR(solver.times()[0], 0.5, 1e-6);
  const int64_t steps = solver.steps()[0];
  EXPECT_LT(steps, 60);
  EXPECT_LT(solver.smallest_dt(), 0.1);
  const Array ended = solver.vorticity();
  solver.advance(10);
  EXPECT_EQ(solver.steps()[0], steps);
  expect_same_bits(solver.vorticity(), ended);
  reference::Flow flow(model, {Integrator::rk4, 0.1, 0.5});
  flow.set_vorticity(field.as<double>());
  for (int64_t s = 1; s < steps; ++s) flow.step();
  EXPECT_LT(flow.time(), 0.5);
  flow.step();
  EXPECT_GE(flow.time(), 0.5 - 1e-5);
}

TEST(FlowSolver, BlowUpsAreFoundWithinTenSteps) {
  const Model model{.grid = {32, 32}, .viscosity = 0};
  Solver solver(cpu(), model, {Integrator::rk2, 0.2}, Storage::f32, 2);
  Array fields = members_of(model, 2, 1);
  for (int64_t k = 0; k < 1024; ++k) fields.mutate<double>()[size_t(k)] *= 0.01;  // member 0 is slow
  solver.set_vorticity(fields);
  solver.advance(400);
  const auto found = solver.blown_up();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].member, 1);
  EXPECT_GE(found[0].step, 0);
  EXPECT_LT(found[0].step, 400);
  EXPECT_FALSE(first_not_finite(solver.last_sound_vorticity()));
}

// The longest lines of fused kernels, along either axis.
TEST(FlowSolver, LongLinesFollowTheReference) {
  for (const int64_t length : {4096, 8192})
    for (const BoxGrid& grid : {BoxGrid{length, 16}, BoxGrid{16, length}}) {
      const Storage storage = length > 4096 ? Storage::f32 : Storage::f64;
      const Model model{.grid = grid, .viscosity = 1e-6, .closure = Closure::smagorinsky};
      const Stepping stepping{Integrator::rk2, 1e-5};
      const Array field = initial_field(grid, Initial::mcwilliams, 1);
      Solver solver(cpu(), model, stepping, storage);
      EXPECT_TRUE(is_fused(modes_of(model), form_of(model, false), storage, cpu().info().limits));
      EXPECT_EQ(is_fused(modes_of(model), form_of(model, false), storage, {.group_lanes = 256}),
                length == 4096);
      solver.set_vorticity(field);
      solver.advance(1);
      auto flow = test::started(model, stepping, field.as<double>());
      test::run(flow, 1);
      EXPECT_LT(test::relative_l2(solver.vorticity().to(Storage::f64).as<double>(), flow.vorticity()),
                storage == Storage::f64 ? 1e-12 : 1e-6)
          << grid.nx;
    }
}

// How lanes share the lines of fused kernels and the layout of their arrays change no bit: GPU shapes compared with the
// CPU's, in f32 and f64, with lines of one and two exchanges. A run's inputs and outputs have the same layout in both.
TEST(FlowSolver, FusedShapesHaveTheSameBits) {
  struct Run {
    int64_t nx, ny;
    Closure closure;
    Storage storage;
    Integrator integrator;
    double cfl;
  };
  for (const Run& r : {Run{64, 32, Closure::smagorinsky, Storage::f64, Integrator::rk2, 0.2},
                       Run{512, 16, Closure::none, Storage::f32, Integrator::rk4, 0.2},
                       Run{16, 256, Closure::smagorinsky, Storage::f32, Integrator::ab3, 0},
                       Run{32, 16, Closure::smagorinsky, Storage::f64, Integrator::etdrk4, 0},
                       Run{8192, 16, Closure::smagorinsky, Storage::f32, Integrator::rk2, 0.2},
                       Run{16, 64, Closure::none, Storage::f64, Integrator::ssprk3, 0}}) {
    const Model model{.grid = {r.nx, r.ny}, .viscosity = 1e-5, .closure = r.closure};
    const auto solver_of = [&](bool gpu) {
      const Stepping stepping{r.integrator, 1e-5, r.cfl, gpu ? "paired_groups" : ""};
      Solver solver(cpu(), model, stepping, r.storage, 2);
      solver.set_vorticity(members_of(model, 2, 3));
      return solver;
    };
    Solver host = solver_of(false), gpu = solver_of(true), resumed = solver_of(true);
    const auto expect_same = [&](Solver& a, Solver& b) {
      EXPECT_FALSE(first_not_finite(a.spectrum()));
      expect_same_bits(a.spectrum(), b.spectrum());
      expect_same_bits(a.vorticity(), b.vorticity());
      expect_same_bits(a.last_sound_vorticity(), b.last_sound_vorticity());
      expect_same_bits(a.right_hand_side(), b.right_hand_side());
      EXPECT_EQ(a.courant(), b.courant());
      const std::vector<Spectra> first = a.spectra(), second = b.spectra();
      const std::vector<Moment> here = a.moment(), there = b.moment();
      for (size_t m = 0; m < 2; ++m) {
        EXPECT_EQ(first[m].energy, second[m].energy);
        EXPECT_EQ(first[m].enstrophy_flux, second[m].enstrophy_flux);
        EXPECT_EQ(here[m].budget.enstrophy, there[m].budget.enstrophy);
        EXPECT_EQ(here[m].energy.closure, there[m].energy.closure);
      }
    };
    for (Solver* s : {&host, &gpu}) s->advance(12);
    expect_same(host, gpu);
    resumed.set_state(host.state());
    gpu.state();  // derives the fields again, as the host's did
    for (Solver* s : {&host, &gpu, &resumed}) s->advance(3);
    expect_same(host, gpu);
    expect_same(host, resumed);
  }
}

// Rows of moments are what the run gives when it stops there; recording changes no bit of it.
TEST(FlowSolver, MomentsAreThoseOfTheRun) {
  for (const int64_t nx : {32, 24}) {  // fused and whole transforms
    Model model = turbulent();
    model.grid.nx = nx;
    model.forcing = {ForcingKind::kolmogorov, 3, 0.2};
    model.hyper_viscosity = 1e-7;
    model.hyper_power = 2;
    const Array fields = members_of(model, 2, 4);
    Solver recorded(cpu(), model, {Integrator::rk4, 2e-3}, Storage::f64, 2),
        plain(cpu(), model, {Integrator::rk4, 2e-3}, Storage::f64, 2);
    for (Solver* s : {&recorded, &plain}) s->set_vorticity(fields);
    recorded.record_moments(7);
    recorded.advance(10);
    recorded.advance(11);
    const auto rows = recorded.moments();
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_TRUE(recorded.moments().empty());
    for (const auto& row : rows) {
      plain.advance(7);
      const std::vector<Budget> budget = plain.budget();
      for (size_t m = 0; m < 2; ++m) {
        const Moment& got = row[m];
        EXPECT_NEAR(got.time, plain.times()[m], 1e-15);
        EXPECT_NEAR(got.budget.energy / budget[m].energy, 1, 1e-13);
        EXPECT_NEAR(got.budget.enstrophy / budget[m].enstrophy, 1, 1e-13);
        EXPECT_NEAR(got.budget.palinstrophy / budget[m].palinstrophy, 1, 1e-13);
        EXPECT_EQ(got.courant, plain.courant()[m]);
        EXPECT_LT(got.energy.closure, 0);
        for (const Rates& r : {got.energy, got.enstrophy})
          EXPECT_NEAR(r.viscous + r.drag + r.other + r.forcing + r.closure, r.all,
                      1e-13 * std::abs(r.viscous));
      }
    }
    expect_same_bits(recorded.spectrum(), plain.spectrum());
    // The rates are those of the run: a central difference over two short steps.
    Solver before(cpu(), model, {Integrator::rk4, 1e-5}, Storage::f64, 2);
    before.set_vorticity(fields);
    const std::vector<Budget> first = before.budget();
    before.advance(1);
    const std::vector<Moment> middle = before.moment();
    before.advance(1);
    const std::vector<Budget> last = before.budget();
    for (size_t m = 0; m < 2; ++m) {
      EXPECT_NEAR((last[m].energy - first[m].energy) / 2e-5 / middle[m].energy.all, 1, 1e-6);
      EXPECT_NEAR((last[m].enstrophy - first[m].enstrophy) / 2e-5 / middle[m].enstrophy.all, 1, 1e-6);
    }
  }
}

TEST(FlowSolver, MemoryIsForetold) {
  struct Run {
    BoxGrid grid;
    Integrator integrator;
    Closure closure;
    Averaging averaging;
    Dealias dealias;
    Storage storage;
    int64_t members;
  };
  const Run runs[] = {
      {{128, 64}, Integrator::rk2, Closure::smagorinsky, {}, Dealias::two_thirds, Storage::f32, 3},
      {{32, 128}, Integrator::etdrk4, Closure::none, {}, Dealias::none, Storage::f64, 1},
      {{62, 44}, Integrator::rk2, Closure::smagorinsky, {}, Dealias::two_thirds, Storage::f32, 1},
      {{33, 74}, Integrator::rk4, Closure::leith, {}, Dealias::padded, Storage::f64, 2},
      {{48, 60}, Integrator::ab3, Closure::leith, {}, Dealias::padded, Storage::f32, 2},
      {{40, 36}, Integrator::rk4, Closure::dynamic_smagorinsky, {}, Dealias::filter, Storage::f64, 1},
      {{36, 32},
       Integrator::rk4,
       Closure::dynamic_leith,
       Averaging::local,
       Dealias::two_thirds,
       Storage::f64,
       2},
  };
  for (const Run& r : runs) {
    const Model model{.grid = r.grid, .closure = r.closure, .averaging = r.averaging, .dealias = r.dealias};
    const Stepping stepping{r.integrator, 1e-3};
    const Device device = Device::open("cpu");
    const int64_t before = device.counters().allocated_bytes;
    Solver solver(device, model, stepping, r.storage, r.members);
    Device(device).reset_peak();
    solver.set_vorticity(initial_field(r.grid, Initial::noise));
    const auto taken = double(device.counters().peak_bytes - before);
    EXPECT_NEAR(double(memory_bytes(model, stepping, r.storage, r.members, device.info())) / taken, 1, 0.01)
        << name(r.closure) << ' ' << r.grid.nx;
  }
}

// Lengths of any kind, odd ones too.
TEST(FlowSolver, OddNumbersOfPoints) {
  for (const BoxGrid& grid : {BoxGrid{21, 15}, BoxGrid{22, 13}}) {
    const Model model{.grid = grid,
                      .viscosity = 1e-2,
                      .closure = Closure::smagorinsky,
                      .dealias = grid.nx == 21 ? Dealias::two_thirds : Dealias::padded};
    const Array field = initial_field(grid, Initial::noise, 1);
    Solver solver(cpu(), model, {Integrator::rk4, 5e-3});
    solver.set_vorticity(field);
    solver.advance(5);
    auto flow = test::started(model, {Integrator::rk4, 5e-3}, field.as<double>());
    test::run(flow, 5);
    EXPECT_LT(test::relative_l2(solver.vorticity().as<double>(), flow.vorticity()), 1e-12);
  }
}

TEST(FlowSolver, BadInputIsNamed) {
  Solver solver(cpu(), {.grid = {16, 16}}, {});
  EXPECT_THROW(solver.set_vorticity(Array(Storage::f64, {16, 8})), InputError);
  Array nan(Storage::f64, {16, 16});
  nan.mutate<double>()[5] = std::nan("");
  EXPECT_THROW(solver.set_vorticity(nan), InputError);
  EXPECT_THROW(Solver(cpu(), {.grid = {16, 16}}, {}, Storage::i32), InputError);
  for (const double length : {1e20, 1e-9, 1e-320, std::nan("")}) {
    EXPECT_THROW(Solver(cpu(), {.grid = {16, 16, length, 1}}, {}), InputError) << length;
    EXPECT_THROW(Solver(cpu(), {.grid = {16, 16, 1, length}}, {}), InputError) << length;
  }
  EXPECT_NO_THROW(Solver(cpu(), {.grid = {16, 16, 4096, 1}}, {}));
  EXPECT_THROW(Solver(cpu(), {.grid = {16, 16}}, {}, Storage::f32, 0), InputError);
  EXPECT_THROW(solver.set_state({}), InputError);
  EXPECT_THROW(solver.set_end(1), InputError);
  EXPECT_THROW(solver.record_moments(0), InputError);
}

}  // namespace
}  // namespace lockstep::flow
