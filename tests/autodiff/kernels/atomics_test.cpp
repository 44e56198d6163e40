// Kernels with atomic operations: an addition of floats reads the cotangent of its element, counters have no derivative.
#include "gradient_case.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

using testing::GradientCase;
using testing::wave;
using Doubles = std::vector<double>;

// mesh[cell] += x^2: 2 x times the cotangent of the cell, which several lanes share; what was there before passes through.
TEST(GradientAtomics, AdditionsReadTheCotangent) {
  GradientCase c{
      kernel("deposit", [](At<1> at, Grid<i32, 1> cell, Grid<f64, 1> x,
                           InOut<f64, 1> mesh) { mesh[cell[at]].unordered_atomic_add(x[at] * x[at]); }),
      {5},
      {},
      {},
      {}};
  const Doubles x = wave(5), seed{1, 10, 100};
  const std::vector<int32_t> cell{2, 0, 2, 2, 0};
  c.put<int32_t>("b0", cell).f64s("b1", x).f64s("b2", wave(3, 0.4));
  const auto got = c.gradients(Device::open("cpu"), {{"b2", seed}});
  for (size_t k = 0; k < 5; ++k) EXPECT_EQ(got.at("b1")[k], 2 * x[k] * seed[size_t(cell[k])]) << k;
  EXPECT_EQ(got.at("b2"), seed);
  c.expect_consistent();
}

// A quadratic spline on a mesh, deposited; in a loop under a condition, next to a read that becomes a gather or a sum.
TEST(GradientAtomics, AdditionsInLoopsAndBranches) {
  GradientCase c{
      kernel("splines",
             [](At<1> at, Grid<f64, 1> x, Grid<f64, 1> mass, InOut<f64, 1> mesh) {
               const Val<f64> place = 3.0 + 2.0 * x[at], nearest = rint(place), d = place - nearest;
               Var<f64> left = mass[at.x(1)] * 1.5;
               for_(-1, 2, [&](const Val<i32>& k) {
                 const Val<f64> u = abs(cast<f64>(k) - d);
                 const Val<f64> w = select(u < 0.5, 0.75 - u * u, 0.5 * (1.5 - u) * (1.5 - u));
                 if_(w > 1e-3, [&] { mesh[cast<i32>(nearest) + k].unordered_atomic_add(w * left); });
                 left = left * (0.9 + 0.1 * w);
               });
             }),
      {6},
      {},
      {},
      {}};
  c.f64s("b0", wave(6)).f64s("b1", wave(6, 0.2)).f64s("b2", wave(8));
  c.expect_consistent();
}

// An output that takes no part has no cotangent.
TEST(GradientAtomics, AdditionsToOtherBuffersHaveNoDerivative) {
  GradientCase c{kernel("both",
                        [](At<1> at, Grid<f64, 1> x, InOut<f64, 1> sum, Out<f64, 1> y) {
                          sum[0].unordered_atomic_add(x[at]);
                          y[at] = 3.0 * x[at];
                        }),
                 {3},
                 {},
                 {},
                 {{"b0"}, {"b2"}}};
  c.f64s("b0", wave(3)).f64s("b1", wave(1)).f64s("b2", wave(3));
  EXPECT_EQ(c.gradients(Device::open("cpu"), {{"b2", {1, 2, 4}}}).at("b0"), (Doubles{3, 6, 12}));
}

// Counters, and old values that no derivative needs; the gradient counts nothing.
TEST(GradientAtomics, CountersAreNotRepeated) {
  GradientCase c{kernel("counters",
                        [](At<1> at, Grid<f64, 1> x, InOut<i32, 1> n, Out<f64, 1> y, Out<i32, 1> slots) {
                          const Val<i32> slot = n[0].atomic_add(Val<i32>(1));
                          n[1].atomic_max(at.x);
                          slots[at] = slot;
                          y[at] = x[at] * x[at] + cast<f64>(slot);
                        }),
                 {4},
                 {},
                 {},
                 {{"b0"}, {"b2"}}};
  const Doubles x = wave(4);
  c.f64s("b0", x).put<int32_t>("b1", {0, 0}).f64s("b2", x).put<int32_t>("b3", {0, 0, 0, 0});
  const Doubles got = c.gradients(Device::open("cpu"), {{"b2", {1, 2, 4, 8}}}).at("b0");
  for (size_t k = 0; k < 4; ++k) EXPECT_EQ(got[k], 2 * x[k] * double(1 << k));
  for (const Kernel& k : differentiate(c.kernel, c.which).kernels())
    for (const KernelParameter& p : k.parameters())
      EXPECT_TRUE(p.name != "b1" || !p.written) << "the gradient changes the counters";
  c.expect_same_bits();
}

TEST(GradientAtomics, CountersOfAGroup) {
  const Kernel table = kernel("table",
                              [](Group<1> g, Grid<f32, 1> x, InOut<i32, 1> counts, Out<f32, 1> y) {
                                const SharedArray<i32> s(2);
                                if_(g.lane() < 2, [&] { s[g.lane()] = 0; });
                                barrier();
                                s[cast<i32>(x(g.global()) > 0.0f)].atomic_add(Val<i32>(1));
                                barrier();
                                if_(g.lane() < 2, [&] { counts[g.lane()].atomic_add(s[g.lane()]); });
                                y(g.global()) = x(g.global()) * group_sum(x(g.global()));
                              },
                              {.group = {32, 1, 1}});
  GradientCase c{table, {2}, {}, {}, {{"b0"}, {"b2"}}};
  std::vector<float> x;
  for (double v : wave(64)) x.push_back(float(v));
  c.put<float>("b0", x).put<int32_t>("b1", {0, 0}).put<float>("b2", x);
  c.expect_same_bits();
  // y = x s, s the sum of the group: the gradient for seeds of 1 is s + s.
  const Doubles got = c.gradients(Device::open("cpu"), {{"b2", Doubles(64, 1)}}).at("b0");
  double sum = 0;
  for (size_t k = 0; k < 32; ++k) sum += double(x[k]);
  for (size_t k = 0; k < 32; ++k) EXPECT_NEAR(got[k], 2 * sum, 1e-4);
}

}  // namespace
}  // namespace lockstep
