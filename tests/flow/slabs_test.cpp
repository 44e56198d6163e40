// A flow divided over ranks is bit-identical to one on a single rank, regardless of the layout of its arrays.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/refusal.hpp"
#include "flow/flows.hpp"
#include "flow/les/fused.hpp"
#include "lockstep/error.hpp"
#include "lockstep/flow.hpp"
#include "parallel/transports/transport.hpp"

namespace lockstep::flow::test {
namespace {

using parallel::Group;

Model turbulence(int64_t ny, int64_t nx) {
  Model model;
  model.grid.ny = ny;
  model.grid.nx = nx;
  model.closure = Closure::smagorinsky;
  model.forcing.kind = ForcingKind::stochastic;
  model.forcing.amount = 0.01;
  model.forcing.wavenumber = 3;
  return model;
}

/// Everything that the solver's results follow from, after steps in two parts with a moment between them.
std::vector<double> after_steps(Solver& solver, const BoxGrid& grid) {
  solver.set_vorticity(Array::of(smooth(grid), {grid.ny, grid.nx}));
  solver.record_moments(5);
  std::vector<double> all = solver.courant();
  for (int64_t steps : {13, 4}) {
    solver.advance(steps);
    for (const auto& [name, array] : solver.state()) {
      const Array numbers = array.to(Storage::f64).packed();
      all.insert(all.end(), numbers.as<double>().begin(), numbers.as<double>().end());
    }
  }
  for (const Array& array : {solver.vorticity(), solver.last_sound_vorticity(), solver.right_hand_side()}) {
    const Array numbers = array.to(Storage::f64).packed();
    all.insert(all.end(), numbers.as<double>().begin(), numbers.as<double>().end());
  }
  for (const std::vector<Moment>& row : solver.moments())
    for (const Moment& m : row) all.insert(all.end(), {m.time, m.budget.energy, m.max_u, m.energy.closure});
  return all;
}

void expect_same_bits(const Model& model, const Stepping& stepping, Storage precision, int64_t members,
                      std::initializer_list<int> ranks_of) {
  const Device device = Device::open("cpu");
  Solver one(device, model, stepping, precision, members);
  const std::vector<double> expected = after_steps(one, model.grid);
  ASSERT_GT(expected.size(), size_t(model.grid.points()));
  for (int ranks : ranks_of)
    parallel::run_ranks(ranks, {.wait_limit_s = 60}, 33, [&](const Group& group) {
      Solver solver(device, model, stepping, precision, members, group);
      EXPECT_EQ(after_steps(solver, model.grid), expected)
          << stepping.variant << " rank " << group.rank() << " of " << ranks;
    });
}

TEST(Slabs, EveryLayoutHasTheBitsOfOneRank) {
  for (const std::string_view variant : step_computation().variants())
    expect_same_bits(turbulence(64, 64), {.dt = 0.01, .variant = std::string(variant)}, Storage::f32, 1, {3});
}

TEST(Slabs, AnyNumberOfRanksAndEveryIntegrator) {
  expect_same_bits(turbulence(64, 128), {.dt = 0.01}, Storage::f32, 1, {2, 4});
  expect_same_bits(turbulence(32, 32), {.integrator = Integrator::ab3, .dt = 0.01}, Storage::f64, 1, {2});
  expect_same_bits(turbulence(64, 64), {.integrator = Integrator::etdrk4, .dt = 0.01}, Storage::f32, 1, {3});
  expect_same_bits(turbulence(32, 32), {.dt = 0.05, .cfl = 0.5}, Storage::f32, 2, {2});
}

std::string refusal(int ranks, double limit_s, const std::function<void(const Group&)>& work) {
  return lockstep::test::refusal([&] { parallel::run_ranks(ranks, {.wait_limit_s = limit_s}, 33, work); });
}
void expect_in(const std::string& text, const char* part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Slabs, WhatCannotBeDividedIsNamed) {
  const Device device = Device::open("cpu");
  const auto with = [&](const Model& model, int ranks) {
    return refusal(ranks, 60, [&](const Group& group) { Solver(device, model, {}, Storage::f32, 1, group); });
  };
  expect_in(with(turbulence(48, 32), 2), "expected axes whose points are powers of two up to 8192");
  Model dynamic = turbulence(32, 32);
  dynamic.closure = Closure::dynamic_smagorinsky;
  expect_in(with(dynamic, 2), "no closure or Smagorinsky's");
  expect_in(with(turbulence(32, 32), 3), "expected at most 2 ranks for this grid");
}

TEST(Slabs, ARankThatFallsSilentIsNamed) {
  const Device device = Device::open("cpu");
  const Model model = turbulence(64, 64);
  Solver(device, model, {}, Storage::f32, 1).advance(1);  // compiles
  expect_in(refusal(3, 5,
                    [&](const Group& group) {
                      Solver solver(device, model, {}, Storage::f32, 1, group);
                      if (group.rank() == 1) return std::this_thread::sleep_for(std::chrono::seconds(12));
                      solver.advance(1);
                    }),
            "rank 1 has not responded for 5 s");
}

}  // namespace
}  // namespace lockstep::flow::test
