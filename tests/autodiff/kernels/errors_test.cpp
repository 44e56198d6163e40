// Refusals of kernels without a gradient name the line and a remedy.
#include <functional>
#include <source_location>

#include "gradient_case.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/kernel/dynamic.hpp"

namespace lockstep {
namespace {

/// `call` throws an InputError whose problem has `problem` and whose place names this file and one of the lines
/// [first, last].
void expect_refused(const std::function<void()>& call, const std::string& problem, uint32_t first = 0,
                    uint32_t last = 0) {
  try {
    call();
    ADD_FAILURE() << "no error: " << problem;
  } catch (const InputError& e) {
    EXPECT_NE(e.problem().find(problem), std::string::npos) << e.what();
    EXPECT_FALSE(e.expected().empty());
    if (first == 0) return;
    const std::string file = "errors_test.cpp:";
    const size_t at = e.where().find(file);
    ASSERT_NE(at, std::string::npos) << e.what();
    const auto line = uint32_t(std::stoul(e.where().substr(at + file.size())));
    EXPECT_GE(line, first) << e.what();
    EXPECT_LE(line, last) << e.what();
  }
}
uint32_t line(const std::source_location& here = std::source_location::current()) { return here.line(); }

TEST(GradientErrors, NamesAndTypes) {
  const Kernel k = kernel("k", [](At<1> at, Grid<f32, 1> x, Out<f32, 1> y, Out<i32, 1> n) {
    y[at] = x[at];
    n[at] = 1;
  });
  expect_refused([&] { differentiate(k, {{"b7"}, {}}); }, "input \"b7\"");
  expect_refused([&] { differentiate(k, {{"b1"}, {}}); }, "input \"b1\"");
  expect_refused([&] { differentiate(k, {{}, {"b2"}}); }, "output \"b2\"");
  expect_refused([&] { tangent(k, {{"p0"}, {}}); }, "input \"p0\"");
  const Kernel integers =
      kernel("i", [](At<1> at, Grid<f32, 1> x, Out<i32, 1> n) { n[at] = cast<i32>(x[at]); });
  expect_refused([&] { differentiate(integers); }, "no output");
}

// The step of an optimizer: it reads x and a buffer with the name that reverse mode gives the gradient of x.
TEST(GradientErrors, AParameterWithTheNameOfAGradient) {
  const auto step = [](const char* rate_of_change, bool written) {
    return kernel("step", [&](At<1> at, Parameters& p) {
      const Grid<f64, 1> x = p.read<f64, 1>("x");
      if (written) {
        p.write<f64, 1>(rate_of_change)[at] = x[at] * x[at];
        return;
      }
      const Grid<f64, 1> g = p.read<f64, 1>(rate_of_change);
      p.write<f64, 1>("y")[at] = x[at] * x[at] - 0.5 * g[at];
    });
  };
  expect_refused([&] { differentiate(step("x_gradient", false)); }, "two parameters named x_gradient");
  expect_refused([&] { differentiate(step("y_cotangent", false)); }, "two parameters named y_cotangent");
  EXPECT_NO_THROW(differentiate(step("x_gradient", false), {{"x_gradient"}, {}}));

  // An output that is only written is no argument of reverse mode, so that its name is free.
  const Device cpu = Device::open("cpu");
  const Kernel square = step("x_gradient", true);
  const Arguments arguments = Arguments()
                                  .set("x", cpu.upload<double>(std::vector<double>{1.5, -2.0}, {2}))
                                  .set("x_gradient", cpu.allocate(Storage::f64, {2}));
  const KernelGradientCheck found = check_gradient(cpu, square, {2}, arguments);
  EXPECT_NEAR(found.forward, found.reverse, 1e-12 * found.scale);
  EXPECT_GT(found.scale, 0);
}

TEST(GradientErrors, WhatHasNoAdjoint) {
  uint32_t first = line();
  const Kernel bits = kernel("bits", [](At<1> at, Grid<f32, 1> x, Out<f32, 1> y) {
    const Val<u32> u = bitcast<u32>(Val<f32>(x[at]));
    if_(u > 5u, [&] { y[at] = x[at]; });
  });
  expect_refused([&] { differentiate(bits); }, "bits of a float", first, line());
  expect_refused([&] { tangent(bits); }, "bits of a float", first, line());

  first = line();
  const Kernel neighbours = kernel(
      "sweep", [](At<1> at, InOut<f32, 1> x) { if_(at.x % 2 == 1, [&] { x(at.x) = x(at.x - 1) * 2.0f; }); });
  expect_refused([&] { differentiate(neighbours); }, "read and written at different elements", first, line());

  first = line();
  const Kernel checked = kernel("checked", [](At<1> at, Grid<f32, 1> x, Out<f32, 1> y) {
    check(x[at] > 0.0f, "positive");
    y[at] = x[at];
  });
  expect_refused([&] { differentiate(checked); }, "check", first, line());
  expect_refused([&] { tangent(checked); }, "check", first, line());
}

// `lines`: of the atomic operation and of what makes it impossible; the message names both.
void expect_atomic_refused(const Kernel& k, const std::string& problem, uint32_t first, uint32_t second) {
  expect_refused([&] { differentiate(k); }, problem, first, first);
  if (second == 0) return;
  try {
    differentiate(k);
  } catch (const InputError& e) {
    const std::string near = "near errors_test.cpp:";
    const size_t at = e.problem().find(near);
    ASSERT_NE(at, std::string::npos) << e.what();
    const auto other = uint32_t(std::stoul(e.problem().substr(at + near.size())));
    EXPECT_GE(other, first) << e.what();
    EXPECT_LE(other, second) << e.what();
  }
}

TEST(GradientErrors, AtomicOperationsOnWhichDerivativesDepend) {
  uint32_t atomic = 0, other = 0;
  const Kernel slots = kernel("slots", [&](At<1> at, Grid<f32, 1> x, InOut<i32, 1> n, Out<f32, 1> y) {
    const Val<i32> slot = (atomic = line(), n[0].atomic_add(Val<i32>(1)));
    other = line(), y[slot] = x[at] * 2.0f;
  });
  expect_atomic_refused(slots, "the old value of an atomic operation", atomic, other);

  const Kernel counted = kernel("counted", [&](At<1> at, Grid<f32, 1> x, InOut<i32, 1> n, Out<f32, 1> y) {
    atomic = line(), n[at.x % 2].atomic_add(Val<i32>(1));
    other = line(), if_(n[0] > 3, [&] { y[at] = x[at]; });
  });
  expect_atomic_refused(counted, "buffer b1 is changed by an atomic operation", atomic, other);

  const Kernel read = kernel("read", [&](At<1> at, Grid<f64, 1> x, InOut<f64, 1> sum, Out<f64, 1> y) {
    atomic = line(), sum[0].unordered_atomic_add(x[at]);
    other = line(), y[at] = sum[1] * x[at];
  });
  expect_atomic_refused(read, "buffer b1 is changed by an atomic operation", atomic, other);

  const Kernel shared = kernel("shared",
                               [&](Group<1> g, Grid<f32, 1> x, Out<f32, 1> y) {
                                 const SharedArray<f32> s(1);
                                 if_(g.lane() == 0, [&] { s[0] = 0.0f; });
                                 barrier();
                                 atomic = line(), s[0].unordered_atomic_add(x(g.global()));
                                 barrier();
                                 y(g.global()) = s[0];
                               },
                               {.group = {32, 1, 1}});
  expect_atomic_refused(shared, "an atomic addition of floats to a shared array", atomic, 0);

  const Kernel table = kernel("table",
                              [&](Group<1> g, Grid<f32, 1> x, Out<f32, 1> y) {
                                const SharedArray<i32> s(1);
                                if_(g.lane() == 0, [&] { s[0] = 0; });
                                barrier();
                                atomic = line(), s[0].atomic_add(Val<i32>(1));
                                barrier();
                                y(g.global()) = cast<f32>(s[0]) * x(g.global());
                              },
                              {.group = {32, 1, 1}});
  expect_atomic_refused(table, "an atomic operation on shared array", atomic, 0);
}

TEST(GradientErrors, UpdatesUnderConditions) {
  const uint32_t first = line();
  const Kernel k = kernel("k", [](At<1> at, InOut<f32, 1> x, Grid<f32, 1> a) {
    if_(at.x % 2 == 0, [&] { x(at.x * 3) = x(at.x * 3) * a[at]; });
  });
  expect_refused([&] { differentiate(k); }, "under conditions", first, line());
}

TEST(GradientErrors, ArgumentsOfALaunch) {
  const Device cpu = Device::open("cpu");
  const Gradient gradient =
      differentiate(kernel("k", [](At<1> at, Grid<f32, 1> x, Out<f32, 1> y) { y[at] = x[at] * x[at.x(1)]; }));
  const Buffer x = cpu.upload(std::vector<float>{1, 2, 3}), y = cpu.upload(std::vector<float>{1, 2, 3}),
               g = cpu.allocate<f32>({3}), shorter = cpu.allocate<f32>({2}), wide = cpu.allocate<f32>({3, 2});
  const auto launch = [&](const Buffer& gradients, const Buffer& cotangents) {
    gradient.launch(cpu, {3},
                    Arguments().set("b0", x).set("b1_cotangent", cotangents).set("b0_gradient", gradients));
  };
  EXPECT_NO_THROW(launch(g, y));
  expect_refused([&] { launch(shorter, y); }, "shape (2,)");
  expect_refused([&] { launch(x, y); }, "overlap");
  expect_refused([&] { launch(y, y); }, "overlap");
  expect_refused([&] { gradient.launch(cpu, {3}, Arguments().set("b0", x).set("b0_gradient", g)); },
                 "no argument");

  const Gradient rows =
      differentiate(kernel("k", [](At<2> at, Grid<f32, 2> a, Out<f32, 2> b) { b[at] = a[at] * a[at]; }));
  const Buffer part = wide.window({0, 0}, {3, 1}), whole = cpu.allocate<f32>({3, 1}),
               result = cpu.allocate<f32>({3, 1});
  const auto launch_rows = [&](const Buffer& own, const Buffer& cotangents) {
    rows.launch(cpu, {3, 1},
                Arguments().set("b0", own).set("b1_cotangent", cotangents).set("b0_gradient", result));
  };
  expect_refused([&] { launch_rows(whole, part); }, "gaps between its rows");
  expect_refused([&] { launch_rows(part, whole); }, "gaps between its rows");
}

TEST(GradientErrors, TangentsOfGroupsAreAllowed) {
  const Kernel group = kernel("group",
                              [](Group<1> g, Grid<f32, 1> x, Out<f32, 1> y) {
                                const SharedArray<f32> s(32);
                                s[g.lane()] = x(g.global()) * x(g.global());
                                barrier();
                                y(g.global()) = group_sum(s[(g.lane() + 1) % 32]);
                              },
                              {.group = {32, 1, 1}});
  const Device cpu = Device::open("cpu");
  std::vector<float> x, dx;
  float sum = 0;
  for (int k = 0; k < 32; ++k) {
    x.push_back(float(k));
    dx.push_back(k % 3 == 0 ? 1 : 0);
    sum += 2 * x.back() * dx.back();
  }
  const Buffer out = cpu.allocate<f32>({32}), tangents = cpu.allocate<f32>({32});
  cpu.launch(tangent(group), {1},
             Arguments()
                 .set("b0", cpu.upload(x))
                 .set("b1", out)
                 .set("b0_tangent", cpu.upload(dx))
                 .set("b1_tangent", tangents));
  for (float v : cpu.download<f32>(tangents)) EXPECT_EQ(v, sum);
}

}  // namespace
}  // namespace lockstep
