// Gradients of kernels that are unlike most: transposed shapes and reads, ends of loops that are not those of a buffer, counters at
// the ends of their type. A wrong derivative of these would be the same on every device.
#include <limits>

#include "autodiff/kernels/widen.hpp"
#include "gradient_case.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

using testing::GradientCase;
using testing::wave;
using Doubles = std::vector<double>;

/// b0 in, b1 out.
GradientCase made(const Kernel& of, const Shape& extent, std::map<std::string, double> numbers = {}) {
  return {of, extent, {}, std::move(numbers), {{"b0"}, {"b1"}}};
}
/// Of a kernel of one lane with the input `x`.
double slope(const Kernel& of, double x) {
  GradientCase c = made(of, {1});
  c.f64s("b0", {x}).f64s("b1", {0});
  return c.gradients(Device::open("interp"), {{"b1", {1}}}).at("b0")[0];
}

// As many elements as points, and other axes: no element of the buffer belongs to a point.
TEST(RareGradients, ShiftedReadsOfATransposedShape) {
  GradientCase c =
      made(kernel("turned", [](At<2> at, Grid<f64, 2> x,
                               Out<f64, 2> y) { y[at] = x.clamped()(Val<i32>(at.y), Val<i32>(at.x) + 1); }),
           {3, 4});
  c.f64s("b0", wave(12), {4, 3}).f64s("b1", wave(12), {3, 4});
  Doubles seed;
  for (int k = 0; k < 12; ++k) seed.push_back(std::ldexp(1, k));
  // Rows 0 to 2; columns 1, 2 and, for the last two points, 2 again.
  const Doubles expected{0, 1, 14, 0, 16, 224, 0, 256, 3584, 0, 0, 0};
  for (const Device& device : testing::gradient_devices())
    EXPECT_EQ(c.gradients(device, {{"b1", seed}}).at("b0"), expected) << device.info().name;
}

// Row and column exchanged: neither the lane's own element nor a shift of it.
TEST(RareGradients, TransposedReads) {
  for (const bool checked : {false, true}) {
    GradientCase c = made(kernel("mirrored",
                                 [&](At<2> at, Grid<f64, 2> x, Out<f64, 2> y) {
                                   const Val<i32> row = at.x, column = at.y;
                                   y[at] = 2.0 * (checked ? x.clamped()(row, column) : x(row, column));
                                 }),
                          {3, 3});
    c.f64s("b0", wave(9), {3, 3}).f64s("b1", wave(9), {3, 3});
    const auto got = c.gradients(Device::open("interp"), {{"b1", {1, 2, 3, 4, 5, 6, 7, 8, 9}}});
    EXPECT_EQ(got.at("b0"), (Doubles{2, 8, 14, 4, 10, 16, 6, 12, 18})) << checked;
  }
}

// Lanes of one row share an element. Their sum is exact: in the order of the lanes it would be 0.
TEST(RareGradients, ElementsThatARowOfLanesShares) {
  GradientCase c =
      made(kernel("shared", [](At<2> at, Grid<f64, 2> x, Out<f64, 2> y) { y[at] = x(Val<i32>(at.y), 0); }),
           {2, 3});
  c.f64s("b0", wave(2), {2, 1}).f64s("b1", wave(6), {2, 3});
  for (const Device& device : testing::gradient_devices())
    EXPECT_EQ(c.gradients(device, {{"b1", {0x1p60, 1, -0x1p60, 2, 3, 4}}}).at("b0"), (Doubles{1, 9}));
}

// Elements beyond the domain that no lane reads: 0, also where the gradient held other values before.
TEST(RareGradients, OwnElementsOfASmallerDomain) {
  const Gradient square =
      differentiate(kernel("square", [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y) { y[at] = x[at] * x[at]; }));
  for (const Device& device : testing::gradient_devices()) {
    const Buffer into = device.upload<double>({7, 7, 7, 7});
    square.launch(device, {2},
                  Arguments()
                      .set("b0", device.upload<double>({2, 3, 5, 7}))
                      .set("b1_cotangent", device.upload<double>({1, 10, 100, 1000}))
                      .set("b0_gradient", into));
    EXPECT_EQ(device.download<double>(into), (Doubles{4, 60, 0, 0}));
  }
}

// Sums over part of the elements, or over positions outside that a rule brings back to the ends.
TEST(RareGradients, SweepsThatEndElsewhereThanTheBuffer) {
  struct Bounds {
    Grid<f64, 1> x, other;
    Param<i32> n;
  };
  const auto sum = [](auto begin, auto end) {
    return kernel("part", [=](At<1> at, Grid<f64, 1> x, Out<f64, 1> y, Grid<f64, 1> other, Param<i32> n) {
      const Bounds bounds{x, other, n};
      Var<f64> total = 0.0;
      for_(begin(bounds), end(bounds),
           [&](Val<i32> j) { total = total + x.clamped()[j] * cast<f64>(at.x + 1); });
      y[at] = total;
    });
  };
  const auto zero = [](const Bounds&) { return Val<i32>(0); };
  const auto number = [](const Bounds& b) { return Val<i32>(b.n); };
  const auto own = [](const Bounds& b) { return b.x.size(0); };
  const auto longer = [](const Bounds& b) { return b.other.size(0); };
  const auto gradient = [](const Kernel& k, double n) {
    GradientCase c = made(k, {5}, {{"p0", n}});
    c.f64s("b0", wave(5)).f64s("b1", wave(5)).f64s("b2", wave(7));
    return c.gradients(Device::open("interp"), {{"b1", {1, 0, 0, 0, 1}}}).at("b0");  // 1 + 5 for each read
  };
  EXPECT_EQ(differentiate(sum(zero, own), {{"b0"}, {"b1"}}).kernels().back().name(), "part.sweep_b0");
  EXPECT_EQ(gradient(sum(zero, own), 0), (Doubles{6, 6, 6, 6, 6}));
  EXPECT_EQ(gradient(sum(zero, number), 3), (Doubles{6, 6, 6, 0, 0}));
  EXPECT_EQ(gradient(sum(number, own), -2), (Doubles{18, 6, 6, 6, 6}));
  EXPECT_EQ(gradient(sum(zero, longer), 0), (Doubles{6, 6, 6, 6, 18}));
}
TEST(RareGradients, SweepsOfPartOfTheElements) {
  const Kernel k =
      kernel("first", [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y, Param<i32> begin, Param<i32> end) {
        Var<f64> total = 0.0;
        for_(begin, end, [&](Val<i32> j) { total = total + x(j) * cast<f64>(at.x + 1); });
        y[at] = total;
      });
  GradientCase c = made(k, {5}, {{"p0", 1}, {"p1", 3}});
  c.f64s("b0", wave(5)).f64s("b1", wave(5));
  EXPECT_EQ(differentiate(k, c.which).kernels().back().name(), "first.sweep_b0");
  for (const Device& device : testing::gradient_devices())
    EXPECT_EQ(c.gradients(device, {{"b1", {1, 0, 0, 0, 1}}}).at("b0"), (Doubles{0, 6, 6, 0, 0}));
}

// One index, needed first inside of a branch and again in the other one and behind them.
TEST(RareGradients, IndicesThatBothBranchesNeed) {
  GradientCase c =
      made(kernel("branches",
                  [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y, Grid<i32, 1> n) {
                    Var<f64> v = 0.0;
                    const Val<i32> half = n[at] / 2, first = half % 3;
                    if_(at.x < 2, [&] { v = x(first) * 2.0; }, [&] { v = x(first) * 3.0 + x(half); });
                    y[at] = v + x(first);
                  }),
           {4});
  c.f64s("b0", wave(5)).f64s("b1", wave(4)).put<int32_t>("b2", {2, 5, 8, 9});
  for (const Device& device : testing::gradient_devices())
    EXPECT_EQ(c.gradients(device, {{"b1", {1, 10, 100, 1000}}}).at("b0"), (Doubles{0, 4403, 30, 0, 1100}));
}

// The next pass depends on a flag of this one: x → x^2 where the flag holds, else 3 x.
TEST(RareGradients, FlagsOfLoopsAreRestored) {
  GradientCase c = made(kernel("flags",
                               [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y, Grid<i32, 1> n) {
                                 Var<f64> v = x[at];
                                 Var<bool> squares = true;
                                 for_(0, Val<i32>(n[at]), [&](Val<i32>) {
                                   v = select(squares, v * v, 3.0 * v);
                                   squares = !squares;
                                 });
                                 y[at] = v;
                               }),
                        {4});
  c.f64s("b0", {2, 2, 2, 2}).f64s("b1", wave(4)).put<int32_t>("b2", {0, 1, 2, 3});
  for (const bool in_lanes : {false, true}) {
    Gradient::Options options;
    options.lane_records = in_lanes;
    EXPECT_EQ(c.gradients(Device::open("interp"), {{"b1", {1, 1, 1, 1}}}, options).at("b0"),
              (Doubles{1, 4, 12, 288}))
        << in_lanes;
  }
}

// Records of a length that is known: of every pass, also of the last one that a step does not fill. y = x^(2^6).
TEST(RareGradients, KnownCountsOfStepsThatDoNotDivide) {
  const Kernel k = kernel("squares", [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y) {
    Var<f64> v = x[at];
    for_(0, 5, 2, [&](Val<i32>) { v = v * v; });
    for_(7, -1, -3, [&](Val<i32>) { v = v * v; });
    y[at] = v;
  });
  const double x = 1 + 0x1p-6;
  EXPECT_NEAR(slope(k, x), 64 * std::pow(x, 63), 1e-13 * 64 * std::pow(x, 63));
}

// Three passes whose counter spans more than half of its type, with and without a jump that is never taken.
TEST(RareGradients, CountersAcrossTheRangeOfTheirType) {
  for (const bool jumps : {false, true}) {
    const auto fourth_power = [&](i32 begin, i32 end, i32 step) {
      return slope(kernel("wide",
                          [&](At<1> at, Grid<f64, 1> x, Out<f64, 1> y) {
                            Var<f64> v = x[at];
                            for_(begin, end, step, [&](Val<i32>) {
                              if (jumps) break_if(v > 1e30);
                              v = v * x[at];
                            });
                            y[at] = v;
                          }),
                   2);
    };
    EXPECT_EQ(fourth_power(-2000000000, 2000000000, 1500000000), 4 * 8) << jumps;
    EXPECT_EQ(fourth_power(2000000000, -2000000000, -1500000000), 4 * 8) << jumps;
  }
}

// An operand that a select leaves out gives nothing, though the slope there may be infinite: of every operation, at its poles.
TEST(RareGradients, OperationsThatSelectLeavesOut) {
  using lockstep::detail::builder;
  struct Row {
    ir::Op op;
    int arity;
  };
  std::vector<Row> rows{
#define LOCKSTEP_OP(name, arity, domain, result, ...) {ir::Op::name, arity},
#define LOCKSTEP_MATH(name, arity, ...) {ir::Op::name, arity},
#include "lockstep/ir/ops.def"
  };
  std::erase_if(rows, [](const Row& row) {
    return ir::types_of(row.op).domain != 'F' || ir::types_of(row.op).result == 'B';
  });
  const Kernel k = kernel("poles", [&](At<1> at, Grid<f64, 1> x, Out<f64, 1> y) {
    const Val<f64> a = x[at];
    Var<f64> sum = a;
    for (const Row& row : rows) {
      const ir::Id args[] = {a.id(), Val<f64>(a * a).id(), Val<f64>(a + 0.5).id()};
      const ir::Id v = row.arity == 1   ? builder().op(row.op, {args[0]})
                       : row.arity == 2 ? builder().op(row.op, {args[0], args[1]})
                                        : builder().op(row.op, {args[0], args[1], args[2]});
      sum = sum + select(a > 100.0, Val<f64>::from(v), 0.0);
    }
    y[at] = sum;
  });
  for (const double x : {0.0, -0.0, 1.0, -1.0, -2.0, 0.5}) EXPECT_EQ(slope(k, x), 1) << x;
}

// In f64 a kernel of f32 computes the same function of the same constants.
TEST(RareGradients, WidenedKernelsKeepTheirConstants) {
  const Kernel k = kernel("plain", [](At<1> at, Grid<f32, 1> x, Out<f32, 1> y) {
    y[at] = 0.3f * x[at] - 1.1f * x[at] * x[at] + cast<f32>(at.x) * 0.7f;
  });
  const auto wide = gradients::widened(k);
  ASSERT_TRUE(wide);
  const Device device = Device::open("interp");
  const Buffer y = device.allocate<f64>({3});
  device.launch(*wide, {3}, device.upload<double>({0.5, -2, 3}), y);
  const Doubles got = device.download<double>(y), x{0.5, -2, 3};
  for (size_t n = 0; n < 3; ++n)
    EXPECT_NEAR(got[n], double(0.3f) * x[n] - double(1.1f) * x[n] * x[n] + double(n) * double(0.7f), 1e-14);
}

}  // namespace
}  // namespace lockstep
