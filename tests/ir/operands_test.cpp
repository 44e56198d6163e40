// C++ numbers as operands, and which operands words take.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/error.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep {
namespace {

/// The error of tracing `body(x)`, or nothing.
template <class T, class Body>
std::string refusal(Body body) {
  try {
    kernel("test.operands", [&](At<1> at, Grid<T, 1> in, Out<i32, 1> out) {
      const Val<T> x = in[at];
      body(x);
      out[at] = 0;
    });
  } catch (const InputError& e) { return e.what(); }
  return "";
}

TEST(Operands, NumbersThatTheTypeDoesNotHoldAreRefused) {
  using D = std::numeric_limits<double>;
  EXPECT_NE(refusal<i32>([](auto x) { 0.5 * x; }), "");
  EXPECT_NE(refusal<i32>([](auto x) { (void)(x / 4 < 1.5); }), "");
  EXPECT_NE(refusal<i32>([](auto x) { x + 5000000000; }), "");
  EXPECT_NE(refusal<i32>([](auto x) { x + 2147483648.0; }), "");
  EXPECT_NE(refusal<i32>([](auto x) { x + D::quiet_NaN(); }), "");
  EXPECT_NE(refusal<u32>([](auto x) { x - -1; }), "");
  EXPECT_NE(refusal<u32>([](auto x) { x & -1.0; }), "");
  EXPECT_NE(refusal<i64>([](auto x) { x + 0x1p63; }), "");
  EXPECT_NE(refusal<i64>([](auto x) { x + ~0ull; }), "");
  EXPECT_NE(refusal<f32>([](auto x) { x + 16777217; }), "");
  EXPECT_NE(refusal<f32>([](auto x) { x * 1e39; }), "");
  EXPECT_NE(refusal<f64>([](auto x) { x + ((int64_t(1) << 53) + 1); }), "");
  EXPECT_NE(refusal<i32>([](auto x) {
              Var<i32> v = x;
              v = 0.5;
            }),
            "");
  EXPECT_NE(refusal<i32>([](auto x) { select(x < 1, x, 1e10); }), "");
  EXPECT_NE(refusal<i32>([](auto x) { LocalArray<i32>(2)[x] = 0.1; }), "");
}

TEST(Operands, TheRefusalNamesTheKernelTheNumberAndTheType) {
  const std::string text = refusal<i32>([](auto x) { x * 0.5; });
  for (const char* part : {"test.operands", "0.5", "i32"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Operands, NumbersThatTheTypeHoldsAreTaken) {
  using F = std::numeric_limits<float>;
  EXPECT_EQ(refusal<i32>([](auto x) { (2 * x + int64_t(7)) % 5u; }), "");
  EXPECT_EQ(refusal<i32>([](auto x) { x + -2147483648ll; }), "");
  EXPECT_EQ(refusal<i32>([](auto x) { x + 'a' + true; }), "");
  EXPECT_EQ(refusal<u32>([](auto x) { x + 0xffffffffull; }), "");
  EXPECT_EQ(refusal<i64>([](auto x) { x + std::numeric_limits<int64_t>::min(); }), "");
  EXPECT_EQ(refusal<f32>([](auto x) { x * 0.1 + 16777216 + 16777218 + (int64_t(1) << 40) + 1e-60; }), "");
  EXPECT_EQ(refusal<f32>([](auto x) { x + double(F::max()) + INFINITY - NAN; }), "");
  EXPECT_EQ(refusal<f64>([](auto x) { x + 16777217 + 0.1f; }), "");
}

template <class A, class B>
concept HasRemainder = requires(A a, B b) { a % b; };
template <class A, class B>
concept HasAnd = requires(A a, B b) { a & b; };
template <class A>
concept HasRoot = requires(A a) { sqrt(a); };
template <class A>
concept HasOrder = requires(A a) { a < a; };
TEST(Operands, WordsTakeTheTypesOfTheirRows) {
  EXPECT_FALSE((HasRemainder<Val<f32>, float>));
  EXPECT_FALSE((HasRemainder<Val<f32>, Val<f32>>));
  EXPECT_TRUE((HasRemainder<Val<i32>, int>));
  EXPECT_FALSE((HasAnd<Val<f64>, Val<f64>>));
  EXPECT_TRUE((HasAnd<Val<bool>, Val<bool>>));
  EXPECT_TRUE(HasRoot<Var<f32>>);
  EXPECT_FALSE(HasRoot<Val<i32>>);
  EXPECT_FALSE(HasOrder<Val<bool>>);
}

}  // namespace
}  // namespace lockstep
