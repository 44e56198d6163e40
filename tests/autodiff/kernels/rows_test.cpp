// Each operation of ops.def in a kernel: both modes against differences.
#include "gradient_case.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

using lockstep::detail::any_value;
using lockstep::detail::id_of;
using testing::GradientCase;
using Doubles = std::vector<double>;

struct Row {
  ir::Op op;
  int arity;
};
std::vector<Row> float_rows() {
  std::vector<Row> rows{
#define LOCKSTEP_OP(name, arity, domain, result, ...) {ir::Op::name, arity},
#define LOCKSTEP_MATH(name, arity, ...) {ir::Op::name, arity},
#include "lockstep/ir/ops.def"
  };
  std::erase_if(rows, [](const Row& row) {
    return ir::types_of(row.op).domain != 'F' || ir::types_of(row.op).result == 'B';
  });
  return rows;
}
GradientCase case_of(const Row& row, const Doubles& a, const Doubles& b) {
  GradientCase c{kernel(std::string(ir::name(row.op)),
                        [&](At<1> at, Grid<f64, 1> x, Grid<f64, 1> y, Grid<f64, 1> z, Out<f64, 1> r) {
                          const ir::Id args[] = {Val<f64>(x[at]).id(), Val<f64>(y[at]).id(),
                                                 Val<f64>(z[at]).id()};
                          ir::Builder& builder = lockstep::detail::builder();
                          const ir::Id v = row.arity == 1   ? builder.op(row.op, {args[0]})
                                           : row.arity == 2 ? builder.op(row.op, {args[0], args[1]})
                                                            : builder.op(row.op, {args[0], args[1], args[2]});
                          r[at] = Val<f64>::from(v);
                        }),
                 {int64_t(a.size())},
                 {},
                 {},
                 {}};
  c.f64s("b0", a).f64s("b1", b).f64s("b2", Doubles(a.size(), 0.3)).f64s("b3", a);
  return c;
}
bool is_step(ir::Op op) {
  return op == ir::Op::ffloor || op == ir::Op::fceil || op == ir::Op::ftrunc || op == ir::Op::frint;
}

TEST(GradientRows, EveryOperationAgreesWithDifferences) {
  int seen = 0;
  for (const Row& row : float_rows()) {
    GradientCase c = case_of(row, {0.31, 0.62, 0.87}, {0.25, 0.75, 0.4});
    ++seen;
    if (!is_step(row.op)) {
      c.expect_consistent(1e-8);
      continue;
    }
    const Device cpu = Device::open("cpu");
    const KernelGradientCheck check = check_gradient(cpu, c.kernel, c.extent, c.arguments(cpu));
    EXPECT_EQ(check.forward, 0);
    EXPECT_EQ(check.reverse, 0);
  }
  EXPECT_GE(seen, 40);
}

TEST(GradientRows, NegativeOperandsWhereTheyAreAllowed) {
  for (const Row& row : float_rows()) {
    using enum ir::Op;
    const bool positive = row.op == log || row.op == log2 || row.op == log10 || row.op == pow ||
                          row.op == rsqrt || row.op == fsqrt;
    if (!positive && !is_step(row.op))
      case_of(row, {-0.31, -0.62, 0.87}, {-0.25, 0.7, -0.4}).expect_consistent(1e-8);
  }
}

TEST(GradientRows, SelectConvertAndRounded) {
  GradientCase c{kernel("others",
                        [](At<1> at, Grid<f64, 1> x, Grid<f64, 1> y, Out<f64, 1> r) {
                          const Val<f64> a = x[at], b = y[at];
                          const Val<f64> chosen = select(a < b, a * b, sin(a));
                          r[at] = rounded(chosen * a) + cast<f64>(cast<i32>(a * 10.0)) * b +
                                  uniform(Val<f64>(2.0)) * a;
                        }),
                 {3},
                 {},
                 {},
                 {}};
  c.f64s("b0", {0.31, 0.62, 0.87}).f64s("b1", {0.25, 0.75, 0.4}).f64s("b2", {0, 0, 0});
  c.expect_consistent();
}

/// 0 where the operand with an infinite slope is not taken; its own derivative elsewhere.
TEST(GradientRows, OperandsThatSelectLeavesOutGiveNothing) {
  GradientCase c{kernel("left_out",
                        [](At<1> at, Grid<f64, 1> x, Grid<f64, 1> y, Out<f64, 1> r) {
                          const Val<f64> a = x[at], b = y[at], inverse = 1.0 / b;
                          Var<f64> scaled = a * inverse;
                          scaled = scaled * 2.0;
                          const Val<f64> root = select(b > 0.0, sqrt(b) + log(b), a);
                          r[at] = select(b > 0.0, scaled * sin(inverse), 3.0 * a) + root;
                        }),
                 {3},
                 {},
                 {},
                 {}};
  const std::vector<double> x{0.3, -0.8, 0}, y{0, 0.5, 0};
  c.f64s("b0", x).f64s("b1", y).f64s("b2", {0, 0, 0});
  for (const Device& device : testing::gradient_devices()) {
    const auto gradients = c.gradients(device, {{"b2", {1, 1, 1}}});
    EXPECT_EQ(gradients.at("b0")[0], 4) << device.info().name;
    EXPECT_EQ(gradients.at("b1")[0], 0);
    EXPECT_EQ(gradients.at("b0")[2], 4);
    EXPECT_EQ(gradients.at("b1")[2], 0);
    EXPECT_NEAR(gradients.at("b0")[1], 2 / y[1] * std::sin(1 / y[1]), 1e-12);
    EXPECT_NEAR(gradients.at("b1")[1],
                -2 * x[1] / (y[1] * y[1]) * (std::sin(1 / y[1]) + std::cos(1 / y[1]) / y[1]) +
                    0.5 / std::sqrt(y[1]) + 1 / y[1],
                1e-11);
  }
}

/// The same of bounds: where min and max take the other operand, a pole of this one is without effect.
TEST(GradientRows, BoundsHidePoles) {
  GradientCase c{kernel("bounded",
                        [](At<1> at, Grid<f64, 1> x, Out<f64, 1> r) {
                          const Val<f64> a = x[at];
                          r[at] = max(log(a), -10.0) + min(1.0 / a, 2.0) + a;
                        }),
                 {3},
                 {},
                 {},
                 {}};
  c.f64s("b0", {0, 2, 0.25}).f64s("b1", {0, 0, 0});
  for (const Device& device : testing::gradient_devices())
    EXPECT_EQ(c.gradients(device, {{"b1", {1, 1, 1}}}).at("b0"), (Doubles{1, 0.5 - 0.25 + 1, 4 + 1}))
        << device.info().name;
}

/// fmod(1, 0.1) is 1 - 9 * 0.1, though 1 / 0.1 rounds to 10.
TEST(GradientRows, RemaindersNextToAWholeQuotient) {
  const Doubles a{1, -1, 7.5, 4.5}, b{0.1, 0.1, 2, 1.5};
  const GradientCase c = case_of({ir::Op::fmod, 2}, a, b);
  for (const Device& device : testing::gradient_devices()) {
    const auto found = c.gradients(device, {{"b3", {1, 1, 1, 1}}});
    EXPECT_EQ(found.at("b0"), (Doubles{1, 1, 1, 1})) << device.info().name;
    EXPECT_EQ(found.at("b1"), (Doubles{-9, 9, -3, -3})) << device.info().name;
  }
}

}  // namespace
}  // namespace lockstep
