// Control flow in reverse: branches, loops of every kind, jumps. Closed forms where there are some.
#include "gradient_case.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

using testing::GradientCase;
using Doubles = std::vector<double>;

/// x and i32 n in, y out.
template <class Body>
GradientCase one_input(const char* name, const Doubles& x, const std::vector<int32_t>& n, Body body) {
  GradientCase c{kernel(name, [&](At<1> at, Grid<f64, 1> a, Grid<i32, 1> counts,
                                  Out<f64, 1> y) { body(at, a, counts, y); }),
                 {int64_t(x.size())},
                 {},
                 {},
                 {{"b0"}, {"b2"}}};
  c.f64s("b0", x).put("b1", n).f64s("b2", Doubles(x.size(), 0));
  return c;
}
Doubles gradient_of(const GradientCase& c) {
  const Device cpu = Device::open("cpu");
  return c.gradients(cpu, {{"b2", Doubles(size_t(c.extent[0]), 1)}}).at("b0");
}
/// Within a few units in the last place.
void expect_equal(const Doubles& got, const Doubles& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t k = 0; k < got.size(); ++k)
    EXPECT_NEAR(got[k], expected[k], 4e-15 * std::fabs(expected[k])) << k;
}

TEST(GradientFlow, BranchesTakeTheirOwnDerivative) {
  const auto c = one_input("branches", {0.5, -0.5, 2, -3}, {0, 0, 0, 0}, [](auto at, auto x, auto, auto y) {
    Var<f64> v = x[at];
    if_(v > 0.0, [&] { v = v * v; }, [&] { v = -3.0 * v; });
    if_(v > 1.0, [&] { v = 2.0 * v; });
    y[at] = v;
  });
  expect_equal(gradient_of(c), {1, -6, 8, -6});
  c.expect_consistent();
}

// Warp returns wrong gradients for nested loops whose trip counts are known at run time only: x^(n m) here.
TEST(GradientFlow, NestedLoopsWithRuntimeCounts) {
  const auto c = one_input("nested", {1.1, 0.9, 1.3, 0.7}, {0, 1, 2, 3}, [](auto at, auto x, auto n, auto y) {
    Var<f64> v = 1.0;
    const Val<i32> count = n[at];
    for_(0, count, [&](auto i) { for_(0, i + 1, [&](auto) { v = v * x[at]; }); });
    y[at] = v;
  });
  Doubles expected;  // d x^p, p = n (n + 1) / 2
  for (const auto& [x, p] : std::vector<std::pair<double, int>>{{1.1, 0}, {0.9, 1}, {1.3, 3}, {0.7, 6}})
    expected.push_back(p * std::pow(x, p - 1));
  const Doubles got = gradient_of(c);
  for (size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], expected[k], 1e-14) << k;
  c.expect_consistent();
}

TEST(GradientFlow, NestedLoopsKeepTheStateOfBothLevels) {
  const auto c =
      one_input("levels", {0.3, 0.6, -0.4, 1.2}, {1, 2, 3, 4}, [](auto at, auto x, auto n, auto y) {
        Var<f64> u = x[at], v = 0.5;
        for_(0, Val<i32>(n[at]), [&](auto i) {
          u = sin(u) + 0.1 * v;
          for_(0, i + 2, [&](auto) { v = v * cos(u) + 0.2 * u * v; });
          if_(v > 0.3, [&] { u = u * v; });
        });
        y[at] = u * v;
      });
  c.expect_consistent();
}

TEST(GradientFlow, WhileEndsWhereTheForwardRunEnded) {  // halving: y = x 2^-k, k by the value
  const auto c = one_input("halving", {0.7, 3, 17, 100}, {0, 0, 0, 0}, [](auto at, auto x, auto, auto y) {
    Var<f64> v = x[at];
    while_([&] { return v > 1.0; }, [&] { v = 0.5 * v; });
    y[at] = v * v;
  });
  Doubles expected;
  for (const auto& [x, k] : std::vector<std::pair<double, int>>{{0.7, 0}, {3, 2}, {17, 5}, {100, 7}})
    expected.push_back(2 * x * std::pow(0.25, k));
  expect_equal(gradient_of(c), expected);
  c.expect_consistent();
}

TEST(GradientFlow, BreakContinueAndReturn) {
  const auto c = one_input("jumps", {0.4, 0.9, 1.7, -0.3, 0.2, 0.5}, {5, 6, 7, 8, 0, 3},
                           [](auto at, auto x, auto n, auto y) {
                             Var<f64> v = x[at];
                             y[at] = 7.0 * v;
                             return_if(n[at] == 0);
                             for_(0, Val<i32>(n[at]), [&](auto i) {
                               continue_if(i == 1);
                               v = v * 1.5 + sin(v);
                               break_if(v > 4.0);
                               for_(13, 2, -3, [&](auto j) {
                                 break_if(j < i);
                                 v = v + 0.01 * cast<f64>(j) * v * v;
                                 if_(v > 30.0, [&] { return_(); });
                               });
                             });
                             y[at] = v;
                           });
  c.expect_consistent();
}

TEST(GradientFlow, ReturnInALoopLeavesTheEarlierStore) {
  const auto c = one_input("return", {2, 3}, {1, 9}, [](auto at, auto x, auto n, auto y) {
    y[at] = 5.0 * x[at];
    Var<f64> v = x[at];
    for_(0, 4, [&](auto i) {
      return_if(i == n[at]);
      v = v * x[at];
    });
    y[at] = v;  // reached where n is 4 or more
  });
  expect_equal(gradient_of(c), {5, 5 * 81});
  c.expect_consistent();
}

TEST(GradientFlow, CountersOfEveryTypeAndStep) {
  const auto c = one_input("counters", {0.8, 1.1}, {3, 7}, [](auto at, auto x, auto n, auto y) {
    Var<f64> v = x[at];
    for_(Val<u32>(2u), cast<u32>(Val<i32>(n[at])) + 4u, 3, [&](auto i) { v = v * v * 0.5 + cast<f64>(i); });
    for_(Val<i64>(i64(9)), cast<i64>(Val<i32>(n[at])) - i64(4), -2,
         [&](auto i) { v = sin(v) * cast<f64>(i); });
    for_(5, Val<i32>(n[at]), [&](auto i) { v = v * cast<f64>(i); });
    y[at] = v;
  });
  c.expect_consistent();
}

TEST(GradientFlow, LocalArraysAtRuntimeIndices) {
  const auto c = one_input("arrays", {0.8, 1.1, -0.6}, {3, 5, 4}, [](auto at, auto x, auto n, auto y) {
    const LocalArray<f64> a(6);
    const LocalArray<i32> places(6);
    for_(0, 6, [&](auto i) {
      a[i] = x[at] * cast<f64>(i + 1);
      places[i] = (i * 5 + 2) % 6;
    });
    for_(0, Val<i32>(n[at]), [&](auto i) {
      const Val<i32> place = places[i];
      a[place] = a[place] * a[(place + 1) % 6] * 0.3 + sin(Val<f64>(a[i]));
      places[i] = (place + i) % 6;
    });
    Var<f64> scale = 1.0;
    if_(n[at] > 3, [&] { scale = a[n[at] % 6] * a[(n[at] + 1) % 6] + x[at]; });  // read here, changed below
    for_(1, 4, [&](auto i) { a[(i + Val<i32>(n[at])) % 6] = cos(Val<f64>(a[i])); });
    Var<f64> sum = scale;
    for_(0, 6, [&](auto i) { sum = sum + a[i] * a[places[i]]; });
    y[at] = sum;
  });
  c.expect_consistent();
}

TEST(GradientFlow, SumsNeedNoRecord) {  // y = n sin x: the loop's variable is not read again
  const auto c = one_input("sums", {0.8, 1.1}, {3, 700}, [](auto at, auto x, auto n, auto y) {
    Var<f64> v = 0.0;
    for_(0, Val<i32>(n[at]), [&](auto i) { v = v + sin(x[at]) * cast<f64>(i); });
    y[at] = v;
  });
  EXPECT_EQ(differentiate(c.kernel, c.which).kernels().size(), 1u);
  c.expect_consistent();
}

TEST(GradientFlow, StateWithoutDerivativeIsRestored) {  // y = x (1 + 1.5 + … + 1 + 0.5 + …)
  const auto c = one_input("factors", {2, 3}, {1, 4}, [](auto at, auto x, auto n, auto y) {
    Var<f64> v = 0.0, factor = 1.0, half = 1.0;
    for_(0, Val<i32>(n[at]), [&](auto) {
      v = v + factor * x[at] + x[at] * half;
      factor = factor * 1.5;
      half = half * 0.5;
    });
    y[at] = v;
  });
  expect_equal(gradient_of(c), {2, 10});
  c.expect_consistent();
}

TEST(GradientFlow, StateThatReachesOthersThroughABranchIsRestored) {
  const auto c = one_input("late", {0.2, 0.3, 0.4}, {1, 4, 5}, [](auto at, auto x, auto n, auto y) {
    Var<f64> v = 0.0, u = x[at], w = x[at];
    for_(0, Val<i32>(n[at]), [&](auto i) {
      if_(i % 2 == 1, [&] { u = w; });
      w = w + x[at];
      v = v + sin(u);
    });
    y[at] = v;
  });
  c.expect_consistent();
}

TEST(GradientFlow, FunctionsAndConstantsOfThem) {
  const auto bend = function("bend", [](Val<f64> a, Val<f64> b) { return a * sin(b) + b * b; });
  const auto c = one_input("calls", {0.8, 1.1}, {1, 2}, [&](auto at, auto x, auto n, auto y) {
    Var<f64> v = x[at];
    for_(0, Val<i32>(n[at]), [&](auto) { v = bend(v, x[at]) - bend(x[at], v); });
    y[at] = v;
  });
  c.expect_consistent();
}

TEST(GradientFlow, StopGradient) {
  const auto c = one_input("stop", {3, 5}, {0, 0}, [](auto at, auto x, auto, auto y) {
    y[at] = x[at] * stop_gradient(Val<f64>(x[at]));
  });
  expect_equal(gradient_of(c), {3, 5});
}

// A root by iterations that stop by a jump in x; the author knows that it is the square root.
TEST(GradientFlow, DerivativesThatTheAuthorGives) {
  const auto root = [](const Val<f64>& v) {
    Var<f64> r(1.0);
    for_(0, 40, [&](Val<i32>) { r = 0.5 * (r + v / r); });
    return Val<f64>(r);
  };
  const Kernel k =
      kernel("root", [&](At<1> at, Grid<f64, 1> x, Grid<f64, 1> scale, Out<f64, 1> y, Out<f64, 1> plain) {
        const Val<f64> v = x[at], s = scale[at], r = floor(root(v) * 1048576.0) * 0x1p-20 * s;
        y[at] = with_derivative<f64>(r, {{v, 0.5 * s / root(v)}, {s, r / s}});
        plain[at] = r;
      });
  GradientCase c{k, {4}, {}, {}, {{"b0", "b1"}, {"b2"}}};
  c.f64s("b0", {2, 9, 1e-3, 7}).f64s("b1", {3, -0.0, -1, 0.5});
  c.f64s("b2", {0, 0, 0, 0}).f64s("b3", {0, 0, 0, 0});
  for (const Device& device : testing::gradient_devices()) {
    const Arguments list = c.arguments(device);
    Buffer y = device.allocate<f64>({4}), plain = device.allocate<f64>({4});
    device.launch(k, {4}, device.upload<f64>({2, 9, 1e-3, 7}), device.upload<f64>({3, -0.0, -1, 0.5}), y,
                  plain);
    const auto a = device.download<f64>(y), b = device.download<f64>(plain);
    // s = -0 has r / s = NaN: the slope is not finite there.
    for (size_t i : {0, 2, 3}) EXPECT_EQ(std::bit_cast<uint64_t>(a[i]), std::bit_cast<uint64_t>(b[i]));
  }
  const auto g = c.gradients(Device::open("interp"), {{"b2", {1, 0, 1, 1}}});
  const std::vector<double> x{2, 9, 1e-3, 7}, s{3, 0, -1, 0.5};
  for (size_t i : {0, 2, 3}) {
    EXPECT_NEAR(g.at("b0")[i], 0.5 * s[i] / std::sqrt(x[i]), 1e-12 * std::fabs(s[i]) / x[i]);
    EXPECT_NEAR(g.at("b1")[i], std::sqrt(x[i]), 2e-6);
  }
}

// A root's slope is infinite at 0, but nothing varies there behind a maximum, a select or a branch that is not taken.
TEST(GradientFlow, NothingVariesBehindAMaximum) {
  const Kernel k = kernel("muted", [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y) {
    const Val<f64> v = x[at], rest = 1.0 - v * v;
    Var<f64> chosen(0.0);
    chosen = select(v > 0.5, v - 0.5, 0.0);
    Var<f64> branch(0.0);
    if_(v > 1.0, [&] { branch = v - 1.0; });
    y[at] = sqrt(max(rest, 0.0)) + sqrt(Val<f64>(branch)) + pow(Val<f64>(chosen), 0.5) +
            asin(max(min(v, 1.0), -1.0)) * v;
  });
  GradientCase c{k, {5}, {}, {}, {}};
  c.f64s("b0", {-2, 0.25, 0.75, 3, 1.5}).f64s("b1", {0, 0, 0, 0, 0});
  c.which = {{"b0"}, {"b1"}};
  c.expect_consistent(1e-6);
}

// Zeros keep their sign, for each sign of the slope.
TEST(GradientFlow, GivenDerivativesLeaveSignedZeros) {
  const Kernel k = kernel("zeros", [](At<1> at, Grid<f32, 1> x, Param<f32> slope, Out<f32, 1> y) {
    y[at] = with_derivative<f32>(x[at], {{x[at], slope}});
  });
  for (const Device& device : testing::gradient_devices())
    for (const float slope : {2.0f, -2.0f, 0.0f, -0.0f}) {
      const Buffer y = device.allocate<f32>({3});
      device.launch(k, {3}, device.upload<f32>({0.0f, -0.0f, 5.0f}), slope, y);
      const auto v = device.download<f32>(y);
      EXPECT_FALSE(std::signbit(v[0])) << slope;
      EXPECT_TRUE(std::signbit(v[1])) << slope;
      EXPECT_EQ(v[2], 5.0f);
      GradientCase c{k, {3}, {}, {{"p0", double(slope)}}, {{"b0"}, {}}};
      c.put<float>("b0", {0.0f, -0.0f, 5.0f}).put<float>("b1", {0, 0, 0});
      EXPECT_EQ(c.gradients(device, {{"b1", {1, 1, 1}}}).at("b0"),
                (std::vector<double>{slope, slope, slope}));
    }
}

}  // namespace
}  // namespace lockstep
