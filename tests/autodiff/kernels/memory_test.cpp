// Buffers in reverse: boundary rules, index arrays, updates in place, elements stored more than once.
#include "gradient_case.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

using testing::GradientCase;
using testing::wave;
using Doubles = std::vector<double>;

TEST(GradientMemory, StencilsUnderEveryBoundaryRule) {
  for (const Boundary boundary : {Boundary::clamp, Boundary::periodic, Boundary::zero}) {
    GradientCase c{kernel("stencil",
                          [&](At<2> at, Grid<f64, 2> t, Out<f64, 2> next, Param<f64> a) {
                            const auto g = t.with(boundary);
                            const auto sum = g[at.x(+1)] + g[at.x(-2)] + g[at.y(+3)] * g[at.y(-1)];
                            next[at] = fma(a, sum - 4.0 * g[at], g[at] * g[at]);
                          }),
                   {5, 4},
                   {},
                   {{"p0", 0.3}},
                   {}};
    c.f64s("b0", wave(20), {5, 4}).f64s("b1", wave(20), {5, 4});
    c.expect_consistent();
  }
}

// Reads that shift become gathers, and sums of integers where the domain is smaller than the buffers: the same numbers.
TEST(GradientMemory, GathersAndSumsAgree) {
  for (const Boundary boundary : {Boundary::clamp, Boundary::periodic, Boundary::zero, Boundary::unchecked}) {
    const bool inside = boundary == Boundary::unchecked;
    GradientCase c{kernel("diagonal",
                          [&](At<2> at, Grid<f64, 2> t, Grid<f64, 2> k, Out<f64, 2> next) {
                            const auto g = t.with(boundary);
                            const Position<2> far = inside ? Position<2>({0, 0}) : Position<2>({-7, 9});
                            next[at] =
                                k[at] * g[at.x(inside ? 0 : 2).y(inside ? 0 : -1)] * g[far] + sin(g[at]);
                          }),
                   {3, 4},
                   {},
                   {},
                   {{"b0", "b1"}, {}}};
    c.f64s("b0", wave(12), {3, 4}).f64s("b1", wave(12, 0.4), {3, 4}).f64s("b2", wave(12), {3, 4});
    c.expect_consistent();
    EXPECT_EQ(differentiate(c.kernel, c.which).kernels().size(), inside ? 1u : 2u);
  }
}

TEST(GradientMemory, LinearStencilsAreOneGather) {
  const Kernel heat = kernel("heat", [](At<1> at, Grid<f64, 1> t, Out<f64, 1> next, Param<f64> a) {
    next[at] = fma(a, t[at.x(+1)] + t[at.x(-1)] - 2.0 * t[at], t[at]);
  });
  const auto kernels = differentiate(heat, {{"b0"}, {}}).kernels();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].name(), "heat.gather_b0");
}

// The transpose of a shifted copy that clamps: the last element collects what clamps to it.
TEST(GradientMemory, ClampedShiftCollectsAtTheEdge) {
  GradientCase c{
      kernel("shift", [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y) { y[at] = x[at.x(+2)]; }), {5}, {}, {}, {}};
  c.f64s("b0", wave(5)).f64s("b1", wave(5));
  const Device cpu = Device::open("cpu");
  EXPECT_EQ(c.gradients(cpu, {{"b1", {1, 2, 4, 8, 16}}}).at("b0"), (Doubles{0, 0, 1, 2, 28}));
}

TEST(GradientMemory, IndexArraysWithRepeatedTargets) {
  GradientCase c{kernel("gather", [](At<1> at, Grid<f64, 1> x, Grid<i32, 1> index,
                                     Out<f64, 1> y) { y[at] = x[index[at]] * x[index(at.x)] + x(at.x % 3); }),
                 {6},
                 {},
                 {},
                 {{"b0"}, {"b2"}}};
  c.f64s("b0", wave(4)).put<int32_t>("b1", {3, 0, 3, 3, 1, 0}).f64s("b2", wave(6));
  const Doubles x = wave(4);
  const Device cpu = Device::open("cpu");
  const Doubles got = c.gradients(cpu, {{"b2", {1, 2, 3, 4, 5, 6}}}).at("b0");
  const Doubles expected{2 * x[0] * 8 + 5, 2 * x[1] * 5 + 7, 9, 2 * x[3] * 8};
  for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(got[k], expected[k], 1e-14) << k;
  c.expect_consistent();
}

// Warp returns wrong gradients for arrays that are read and then written.
TEST(GradientMemory, UpdatesInPlace) {
  GradientCase c{kernel("update",
                        [](At<1> at, InOut<f64, 1> x, Grid<i32, 1> n) {
                          x[at] = x[at] * x[at];
                          for_(0, Val<i32>(n[at]), [&](auto) { x[at] = x[at] * 3.0 + sin(Val<f64>(x[at])); });
                          if_(x[at] > 2.0, [&] { x[at] = 0.5 * x[at]; });
                        }),
                 {4},
                 {},
                 {},
                 {{"b0"}, {"b0"}}};
  c.f64s("b0", {0.3, 0.7, -0.9, 1.2, 5, 6}).put<int32_t>("b1", {0, 1, 2, 3});
  c.expect_consistent();
  const Device cpu = Device::open("cpu");
  const Doubles got = c.gradients(cpu, {{"b0", {1, 0, 0, 0, 7, 9}}}).at("b0");
  EXPECT_NEAR(got[0], 0.6, 1e-15);
  EXPECT_EQ(got[4], 7);  // no lane writes these: they pass through
  EXPECT_EQ(got[5], 9);
}

TEST(GradientMemory, StoresWithoutReadsCutTheirElements) {
  GradientCase c{
      kernel("fill", [](At<1> at, InOut<f64, 1> x, Grid<f64, 1> from) { x(at.x * 2) = 3.0 * from[at]; }),
      {2},
      {},
      {},
      {{"b0", "b1"}, {"b0"}}};
  c.f64s("b0", wave(5)).f64s("b1", wave(2));
  const Device cpu = Device::open("cpu");
  const auto got = c.gradients(cpu, {{"b0", {1, 2, 4, 8, 16}}});
  EXPECT_EQ(got.at("b0"), (Doubles{0, 2, 0, 8, 16}));
  EXPECT_EQ(got.at("b1"), (Doubles{3, 12}));
}

TEST(GradientMemory, TheLastStoreToAnElementCounts) {
  GradientCase c{kernel("overwrite",
                        [](At<1> at, Grid<f64, 1> x, Grid<i32, 1> n, Out<f64, 2> y) {
                          for_(0, 4,
                               [&](auto k) { y(at.x, k % Val<i32>(n[at])) = x[at] * cast<f64>(k + 1); });
                        }),
                 {2},
                 {},
                 {},
                 {{"b0"}, {"b2"}}};
  c.f64s("b0", wave(2)).put<int32_t>("b1", {3, 2}).f64s("b2", wave(6), {2, 3});
  const Device cpu = Device::open("cpu");
  // Lane 0 leaves 4, 2, 3 in its row, lane 1 leaves 3, 4.
  EXPECT_EQ(c.gradients(cpu, {{"b2", {1, 10, 100, 1, 10, 100}}}).at("b0"), (Doubles{324, 43}));
}

TEST(GradientMemory, RowsOfOneLaneNeedNoSums) {
  GradientCase c{kernel("product",
                        [](At<1> at, Grid<f64, 2> a, Grid<f64, 1> x, Out<f64, 1> y) {
                          Var<f64> sum = 0.0;
                          for_(0, 3, [&](auto k) { sum = sum + a(at.x, k) * x[k] * a(at.x, 2 - k); });
                          y[at] = sum;
                        }),
                 {4},
                 {},
                 {},
                 {}};
  c.f64s("b0", wave(12), {4, 3}).f64s("b1", wave(3)).f64s("b2", wave(4));
  c.expect_consistent();
}

TEST(GradientMemory, RowsAndColumnsOfOneMatrixAreShared) {
  GradientCase c{kernel("transposed",
                        [](At<1> at, Grid<f64, 2> a, Out<f64, 1> y) {
                          Var<f64> sum = 0.0;
                          for_(0, 3, [&](auto k) { sum = sum + a(at.x, k) * a(k, at.x); });
                          y[at] = sum;
                        }),
                 {3},
                 {},
                 {},
                 {}};
  c.f64s("b0", wave(9), {3, 3}).f64s("b1", wave(3));
  c.expect_consistent();
}

TEST(GradientMemory, NumbersAndThreeAxes) {
  GradientCase c{
      kernel("numbers",
             [](At<3> at, Grid<f32, 3> x, Out<f64, 3> y, Param<f64> a, Param<f32> b, Param<i32> n) {
               y[at] = a * cast<f64>(x[at] * b) + pow(Val<f64>(a), cast<f64>(Val<i32>(n)));
             }),
      {2, 3, 2},
      {},
      {{"p0", 1.3}, {"p1", 0.4}, {"p2", 3}},
      {}};
  c.put<float>("b0", std::vector<float>(12, 0.5f), {2, 3, 2}).f64s("b1", wave(12), {2, 3, 2});
  const Device cpu = Device::open("cpu");
  const auto got = c.gradients(cpu, {{"b1", Doubles(12, 1)}});
  EXPECT_NEAR(got.at("p0")[0], 12 * (double(0.5f * 0.4f) + 3 * 1.3 * 1.3), 1e-13);
  EXPECT_NEAR(got.at("p1")[0], 12 * 1.3 * 0.5, 1e-5);
  EXPECT_NEAR(got.at("b0")[7], 1.3 * 0.4, 1e-7);
  c.expect_same_bits();
}

TEST(GradientMemory, SixteenBitStorageHasWideGradients) {
  GradientCase c{kernel("half", [](At<1> at, Grid<f16, 1> x, Out<bf16, 1> y) { y[at] = x[at] * x[at]; }),
                 {2},
                 {},
                 {},
                 {}};
  c.put<f16>("b0", {f16{0x3e00}, f16{0xc000}}).put<bf16>("b1", {bf16{0}, bf16{0}});  // 1.5, -2
  const Device cpu = Device::open("cpu");
  EXPECT_EQ(c.gradients(cpu, {{"b1", {1, 0.1}}}).at("b0"), (Doubles{3, -4 * double(0.1f)}));
}

TEST(GradientMemory, AccessesOfSeveralElements) {
  GradientCase c{kernel("wide",
                        [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y) {
                          const auto four = x.wide<4>(at.x * 4);
                          y.store_wide(Wide<f64, 2>{{four[0] * four[3], four[1] + four[2] * four[2]}},
                                       at.x * 2);
                        }),
                 {3},
                 {},
                 {},
                 {}};
  c.f64s("b0", wave(12)).f64s("b1", wave(6));
  c.expect_consistent();
}

TEST(GradientMemory, ElementsThatNothingWritesPassThrough) {
  GradientCase c{
      kernel("read", [](At<1> at, InOut<f64, 1> x, Out<f64, 1> y) { y[at] = 3.0 * x[at]; }), {2}, {}, {}, {}};
  c.f64s("b0", wave(3)).f64s("b1", wave(3));
  const Device cpu = Device::open("cpu");
  EXPECT_EQ(c.gradients(cpu, {{"b0", {1, 2, 4}}, {"b1", {1, 10, 100}}}).at("b0"), (Doubles{4, 32, 4}));
}

TEST(GradientMemory, SmallerDomainsAndNoPoints) {
  GradientCase c{kernel("part", [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y) { y[at] = x[at] * x[at.x(1)]; }),
                 {2},
                 {},
                 {},
                 {}};
  c.f64s("b0", {2, 3, 5, 7}).f64s("b1", wave(4));
  const Device cpu = Device::open("cpu");
  EXPECT_EQ(c.gradients(cpu, {{"b1", {1, 10, 100, 1000}}}).at("b0"), (Doubles{3, 52, 30, 0}));
  c.extent = {0};
  EXPECT_EQ(c.gradients(cpu, {{"b1", {1, 10, 100, 1000}}}).at("b0"), (Doubles{0, 0, 0, 0}));
}

TEST(GradientMemory, RecordsStayWithinTheLimit) {
  GradientCase c{kernel("long",
                        [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y, Param<i32> n) {
                          Var<f64> v = x[at];
                          for_(0, n, [&](auto) { v = sin(v); });
                          y[at] = v;
                        }),
                 {8},
                 {},
                 {{"p0", 1000}},
                 {}};
  c.f64s("b0", wave(8)).f64s("b1", wave(8));
  const Device cpu = Device::open("cpu");
  const std::map<std::string, Doubles> one{{"b1", Doubles(8, 1)}};
  EXPECT_NO_THROW(c.gradients(cpu, one, {.memory_bytes = 8 * 1000 * 8}));
  try {
    c.gradients(cpu, one, {.memory_bytes = 8 * 1000 * 8 - 1});
    FAIL();
  } catch (const InputError& e) {
    EXPECT_NE(e.where().find("memory_test.cpp"), std::string::npos) << e.what();
    EXPECT_NE(e.problem().find("64000 bytes"), std::string::npos) << e.what();
  }
}

// Lanes note where their records do not fit; the launch then begins again, also with sums that lanes add to together and
// with cotangents that are taken. y[k] = x[0]^n[k] x[k], so dx[0] = sum of n[k] x[0]^(n[k] - 1) x[k] g[k], and + g[0] x[0]^n[0].
TEST(GradientMemory, LongAndShortRecordsInTurn) {
  const Kernel k = kernel("powers", [](At<1> at, Grid<f64, 1> x, Grid<i32, 1> n, Out<f64, 1> y) {
    Var<f64> v = x[at];
    for_(0, Val<i32>(n[at]), [&](auto) { v = v * x(0); });
    y[at] = v;
  });
  const Gradient gradient = differentiate(k, {.inputs = {"b0"}, .outputs = {"b2"}});
  for (const char* name : {"cpu", "interp"}) {
    const Device device = Device::open(name);
    const Doubles x{1.0625, 0.5, -2, 3};
    for (const int32_t most : {3, 100, 40, 2, 33, 32}) {
      const std::vector<int32_t> n{0, most, 1, most / 2};
      Doubles expected(4, 0);
      for (size_t i = 0; i < 4; ++i) {
        expected[i] += std::pow(x[0], n[i]);
        expected[0] += n[i] * std::pow(x[0], n[i] - 1) * x[i];
      }
      const Buffer result = device.allocate<f64>({4});
      gradient.launch(device, {4},
                      Arguments()
                          .set("b0", device.upload<double>(x, {4}))
                          .set("b1", device.upload<int32_t>(n, {4}))
                          .set("b2_cotangent", device.upload<double>(Doubles(4, 1), {4}))
                          .set("b0_gradient", result));
      const Doubles found = device.download<double>(result);
      for (size_t i = 0; i < 4; ++i)
        EXPECT_NEAR(found[i], expected[i], 1e-12 * std::abs(expected[i])) << name << " " << most << " " << i;
    }
  }
}

}  // namespace
}  // namespace lockstep
