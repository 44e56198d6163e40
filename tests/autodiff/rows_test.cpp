// Every row of ops.def: its derivative and its complex continuation against central differences in 113 bits.
#include "autodiff/rows.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>

namespace lockstep::testing {
namespace {

using autodiff::Op;
using autodiff::Tape;
using autodiff::Value;
using Complex = std::complex<double>;

/// d row / d operand k at a point, exact to about 18 digits; NaN outside of the domain.
double difference(Op op, int k, double a, double b) {
  const Quad kStep = Quad(1) / 1000000000;
  const auto at = [&](Quad step) {
    return wide::row<Quad>(op, Quad(a) + (k == 0 ? step : 0), Quad(b) + (k == 1 ? step : 0));
  };
  return double((at(kStep) - at(-kStep)) / (2 * kStep));
}

void check(const Row& row, int k, double a, double b, double exact) {
  Tape g;
  const Value leaves[] = {g.variable("a"), g.variable("b")};
  const Value f = row.arity == 1 ? g.make(row.op, {leaves[0]}) : g.make(row.op, {leaves[0], leaves[1]});
  const std::vector<double> point{a, b};
  const double derivative = evaluate(gradient(f, {leaves[k]})[0], point);
  const double tolerance = 1e-12 * std::max(1.0, std::abs(exact));
  EXPECT_NEAR(derivative, exact, tolerance)
      << name(row.op) << " by operand " << k << " at " << a << ", " << b;
  std::vector<Complex> stepped(point.begin(), point.end());
  stepped[size_t(k)] += Complex(0, 1e-30);
  EXPECT_NEAR(evaluate(f, stepped).imag() / 1e-30, exact, tolerance)
      << name(row.op) << " on complex operand " << k << " at " << a << ", " << b;
}

TEST(Rows, DerivativesAndComplexFormsEqualDifferences) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> range(-3, 3);
  for (const Row& row : graph_rows()) {
    if (row.kind != RowKind::VALUE) continue;
    for (int k = 0; k < row.arity; ++k) {
      int checked = 0;
      for (int n = 0; n < 100; ++n) {
        const double a = range(random), b = range(random);
        const double exact = difference(row.op, k, a, b);
        if (!std::isfinite(exact)) continue;
        check(row, k, a, b, exact);
        ++checked;
      }
      EXPECT_GE(checked, 20) << name(row.op);
    }
  }
}

/// The derivative by operand k of 10^5 times a row, relative to the exact one where that is a normal number.
void check_extreme(Op op, int k, double a, double b, Quad exact) {
  if (fabsq(exact) < Quad(1e-290) || fabsq(exact) > Quad(1e300)) return;
  Tape g;
  const Value leaves[] = {g.variable("a"), g.variable("b")};
  const bool one = op != Op::atan2 && op != Op::hypot;
  const Value f = 1e5 * (one ? g.make(op, {leaves[0]}) : g.make(op, {leaves[0], leaves[1]}));
  const double got = evaluate(gradient(f, {leaves[k]})[0], std::vector<double>{a, b}),
               want = double(1e5 * exact);
  EXPECT_LE(std::abs(got - want), 4e-15 * std::abs(want))
      << name(op) << " by operand " << k << " at " << a << ", " << b << ": " << got << ", exact " << want;
}

TEST(Rows, DerivativesAreAccurateAtExtremeOperands) {
  std::mt19937 random(6);
  std::uniform_real_distribution<double> exponent(-145, 145), distance(-14, 0), near(-1, 1);
  for (int n = 0; n < 300; ++n) {
    const double a = std::copysign(std::pow(10, 2 * exponent(random)), near(random));
    const double b =
        n % 2 ? a * near(random) * 10 : std::copysign(std::pow(10, 2 * exponent(random)), near(random));
    const Quad root = hypotq(a, b);
    check_extreme(Op::hypot, 0, a, b, Quad(a) / root);
    check_extreme(Op::hypot, 1, a, b, Quad(b) / root);
    check_extreme(Op::atan2, 0, a, b, Quad(b) / root / root);
    check_extreme(Op::atan2, 1, a, b, -Quad(a) / root / root);
    check_extreme(Op::cbrt, 0, a, 0, 1 / (3 * powq(cbrtq(a), 2)));
    const double inside = std::copysign(1 - std::pow(10, distance(random)), near(random));
    check_extreme(Op::asin, 0, inside, 0, 1 / sqrtq((1 - Quad(inside)) * (1 + Quad(inside))));
    check_extreme(Op::acos, 0, inside, 0, -1 / sqrtq((1 - Quad(inside)) * (1 + Quad(inside))));
    const double below = -50 * std::abs(near(random));
    check_extreme(Op::expm1, 0, below, 0, expq(below));
  }
  Tape g;
  const Value x = g.variable("x");
  EXPECT_EQ(evaluate(gradient(cbrt(x), {x})[0], std::vector<double>{0}),
            std::numeric_limits<double>::infinity());
}

TEST(Rows, HostValuesEqualWiderOnes) {
  Sampler<double> sampler(ir::Op::none, 9);
  for (const Row& row : graph_rows())
    for (int n = 0; n < 200; ++n) {
      double a, b;
      sampler.next(a, b);
      Tape g;
      const Value x = g.variable("a"), y = g.variable("b");
      const Value f = row.arity == 1 ? g.make(row.op, {x}) : g.make(row.op, {x, y});
      // The C library's own functions are within a unit or two.
      EXPECT_LE(ulp_error<double>(evaluate(f, std::vector<double>{a, b}), wide::row<Quad>(row.op, a, b)), 3)
          << name(row.op) << " of " << a << ", " << b;
    }
}

TEST(Rows, ConditionsHaveNoDerivative) {
  Tape g;
  const Value x = g.variable("x"), y = g.variable("y");
  for (const Row& row : graph_rows()) {
    if (row.kind == RowKind::VALUE) continue;
    const Value f = row.arity == 1 ? g.make(row.op, {x}) : g.make(row.op, {x, y});
    for (const Value& d : gradient(f, {x, y})) EXPECT_TRUE(d.is_constant(0)) << name(row.op);
  }
}

TEST(Rows, AreAllOperationsButThoseKnownByName) {
  const size_t by_name = 7;  // constant, leaf, sum, powi, sign, stop, select
  EXPECT_EQ(graph_rows().size() + by_name, size_t(Op::count_));
}

}  // namespace
}  // namespace lockstep::testing
