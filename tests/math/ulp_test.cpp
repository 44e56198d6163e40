// Every elementary function keeps its promised error over a sample of operands, and C99's values at the
// edges.
#include <gtest/gtest.h>

#include "math/oracle.hpp"
#include "math/reference.hpp"

namespace lockstep::testing {
namespace {

class Function : public ::testing::TestWithParam<ir::Op> {};

std::string operands(ir::Op op, double a, double b) {
  char text[96];
  std::snprintf(text, sizeof text, ir::arity(op) == 2 ? "(%a, %a)" : "(%a)", a, b);
  return std::string(ir::name(op)) + text;
}

template <class T>
void check_sample(ir::Op op, int count) {
  Sampler<T> sampler(op, 2024);
  double worst = 0;
  for (int i = 0; i < count; ++i) {
    T a, b;
    sampler.next(a, b);
    const double error = ulp_error<T>(math::evaluate(op, a, b), oracle<Wider<T>>(op, a, b));
    if (error > worst) {
      worst = error;
      ASSERT_LE(error, promised_ulp(op)) << operands(op, double(a), double(b));
    }
  }
}
TEST_P(Function, KeepsItsBoundF32) { check_sample<float>(GetParam(), 200000); }
TEST_P(Function, KeepsItsBoundF64) { check_sample<double>(GetParam(), 10000); }

/// Values around every border: zeros, subnormals, ones, halves, whole and odd numbers, range ends,
/// infinities, NaN.
template <class T>
std::vector<T> edge_values() {
  using L = std::numeric_limits<T>;
  std::vector<T> values;
  for (const T v : {T(0),
                    L::denorm_min(),
                    L::min() - L::denorm_min(),
                    L::min(),
                    L::epsilon(),
                    T(0.1),
                    T(0.5),
                    T(0.5625),
                    T(0.70710678),
                    T(1) - L::epsilon() / 2,
                    T(1),
                    T(1) + L::epsilon(),
                    T(1.4142135),
                    T(1.5),
                    T(1.5707963267948966),
                    T(2),
                    T(2.5),
                    T(3),
                    T(3.141592653589793),
                    T(4),
                    T(6),
                    T(8),
                    T(33),
                    T(88.5),
                    T(88.72),
                    T(89.3),
                    T(103.9),
                    T(104.1),
                    T(127),
                    T(128),
                    T(149.5),
                    T(709.7),
                    T(710.4),
                    T(744.9),
                    T(746),
                    T(1023.5),
                    T(1074.5),
                    T(4194303.5),
                    T(8388607),
                    T(16777215),
                    T(1e9),
                    T(1e22),
                    T(9007199254740991.0),
                    T(std::sqrt(L::max())),
                    L::max() / 2,
                    L::max(),
                    L::infinity(),
                    L::quiet_NaN()}) {
    values.push_back(v);
    values.push_back(-v);
  }
  return values;
}

template <class T>
void check_edge(ir::Op op, T a, T b) {
  const T got = math::evaluate(op, a, b);
  const Wider<T> want = oracle<Wider<T>>(op, a, b);
  EXPECT_LE(ulp_error<T>(got, want), promised_ulp(op))
      << operands(op, double(a), double(b)) << " gave " << got;
  if (want == 0) {
    const bool negative = sizeof(T) == 4 ? std::signbit(double(want)) : signbitq(want) != 0;
    EXPECT_EQ(std::signbit(got), negative) << operands(op, double(a), double(b)) << " gave " << got;
  }
}
template <class T>
void check_edges(ir::Op op) {
  const auto values = edge_values<T>();
  for (const T a : values) {
    if (ir::arity(op) == 1)
      check_edge<T>(op, a, T(0));
    else
      for (const T b : values) check_edge<T>(op, a, b);
  }
}
TEST_P(Function, EdgesF32) { check_edges<float>(GetParam()); }
TEST_P(Function, EdgesF64) { check_edges<double>(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, Function, ::testing::ValuesIn(math::functions()),
                         [](const auto& row) { return std::string(ir::name(row.param)); });

TEST(Powi, ProductsStayWithinTheExponentInUlp) {
  for (int n = 2; n <= kProductPower; ++n)
    for (const int exponent : {n, -n}) {
      EXPECT_LE(powi_error<float>(exponent, 2000, 17), n) << exponent;
      EXPECT_LE(powi_error<double>(exponent, 500, 17), n) << exponent;
    }
}

TEST(Trigonometry, ReducesTheHardestDoubles) {
  // Doubles that lie closest to a multiple of pi/2 over their binades stress the window of 2/pi's bits.
  for (const double x : {0x1.6ac5b262ca1ffp+849, 0x1.8951ca7b6e2a5p+500, 0x1.921fb54442d18p+1, 0x1p1023,
                         0x1.fffffffffffffp1023, 0x1p28, 0x1.fffffffffffffp27})
    for (const ir::Op op : {ir::Op::sin, ir::Op::cos, ir::Op::tan})
      EXPECT_LE(ulp_error<double>(math::evaluate(op, x), oracle<Quad>(op, x, 0)), 2) << operands(op, x, 0);
}

TEST(Trigonometry, IsRightAroundEveryMultipleOfAQuarterTurnF32) {
  for (int n = 1; n < 40000; ++n) {
    const float x = float(n * 1.5707963267948966);
    for (const float near : {std::nextafter(x, 0.0f), x, std::nextafter(x, 1e30f)})
      for (const ir::Op op : {ir::Op::sin, ir::Op::cos, ir::Op::tan})
        ASSERT_LE(ulp_error<float>(math::evaluate(op, near), oracle<double>(op, near, 0)), 2)
            << operands(op, near, 0);
  }
}

TEST(Trigonometry, IsRightAroundMultiplesOfAQuarterTurnF64) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20000; ++round) {
    const uint64_t n = (random() | 1) >> (random() % 64);
    const auto x = double(Quad(n) * (2 * atanq(Quad(1))));
    for (const ir::Op op : {ir::Op::sin, ir::Op::cos, ir::Op::tan})
      ASSERT_LE(ulp_error<double>(math::evaluate(op, x), oracle<Quad>(op, x, 0)), 2) << operands(op, x, 0);
  }
}

TEST(Remainder, IsExactForAllExponentsF32) {
  for (int ex = -149; ex < 128; ex += 3)
    for (int ey = -149; ey < 128; ey += 7) {
      const float x = std::ldexp(1.7320508f, ex), y = std::ldexp(1.2345678f, ey);
      if (y == 0 || x == 0 || std::isinf(x) || std::isinf(y)) continue;
      ASSERT_EQ(math::evaluate(ir::Op::fmod, x, y), std::fmod(x, y)) << x << " " << y;
    }
}

}  // namespace
}  // namespace lockstep::testing
