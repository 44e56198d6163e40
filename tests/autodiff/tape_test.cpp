#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/refusal.hpp"
#include "lockstep/autodiff.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::autodiff {
namespace {

using test::refusal;

TEST(Tape, EqualExpressionsAreOneNode) {
  Tape g;
  const Value x = g.variable("x"), y = g.variable("y");
  EXPECT_TRUE(same_node(sin(x * y) + 2, 2 + sin(y * x)));
  EXPECT_FALSE(same_node(x - y, y - x));
  EXPECT_FALSE(same_node(min(x, y), min(y, x)));  // ties belong to the first operand
  const size_t before = g.size();
  (void)(sin(x * y) + 2);
  EXPECT_EQ(g.size(), before);
}

TEST(Tape, Simplifies) {
  Tape g;
  const Value x = g.variable("x"), y = g.variable("y");
  EXPECT_TRUE(same_node(x + 0, x));
  EXPECT_TRUE(same_node(1 * x, x));
  EXPECT_TRUE((x * 0).is_constant(0));
  EXPECT_TRUE((x - x).is_constant(0));
  EXPECT_TRUE(same_node(-(-x), x));
  EXPECT_TRUE(same_node(x + -y, x - y));
  EXPECT_TRUE(same_node(-(x - y), y - x));
  EXPECT_TRUE(same_node(pow(x, 2), x * x));
  EXPECT_TRUE(same_node(pow(x, 0.5), sqrt(x)));
  EXPECT_TRUE(same_node(x / 1, x));
  EXPECT_TRUE(same_node(select(x < y, x, x), x));
  EXPECT_TRUE((exp(g.constant(0)) + 2).is_constant(3));
  EXPECT_TRUE(same_node(sum({x, y}), x + y));
  const Value folded = g.constant(2) * g.constant(3) - 1;
  EXPECT_TRUE(folded.is_constant(5));
}

TEST(Tape, RefusesValuesOfAnotherGraph) {
  Tape g, h;
  const Value x = g.variable("x"), y = h.variable("y");
  EXPECT_THROW(x + y, InputError);
  EXPECT_THROW(sum(std::span<const Value>()), InputError);
  EXPECT_THROW(safe_log(x, 0), InputError);
  EXPECT_THROW(evaluate(x + 1, std::vector<double>{}), InputError);
  const Value one = g.constant(1);
  EXPECT_THROW(vjp(std::span(&x, 1), std::span<const Value>(), std::span(&one, 1)), InputError);
}

TEST(Tape, FunctionsOfValuesRefuseTwoGraphsAndNameBoth) {
  Tape a, b;
  const Value x = a.variable("width"), y = b.variable("height");
  const Value f = sin(x), h = y * y;
  const auto names_both = [](const std::string& text) {
    EXPECT_NE(text.find("width"), std::string::npos) << text;
    EXPECT_NE(text.find("height"), std::string::npos) << text;
  };
  names_both(refusal([&] { gradient(f, {y}); }));
  names_both(refusal([&] { vjp(std::vector{f}, std::vector{y}, std::vector{x}); }));
  names_both(refusal([&] { jvp(std::vector{f}, std::vector{y}, std::vector{a.constant(1)}); }));
  names_both(refusal([&] { jvp(std::vector{f}, std::vector{x}, std::vector{y}); }));
  names_both(refusal([&] { evaluate(std::vector{f, h}, std::vector{1.0}); }));
  names_both(refusal([&] { topology(std::vector{f, h}); }));
}

// The text of an operation has its first three leaves.
TEST(Tape, RefusalsTellValuesByTheirLeaves) {
  Tape a, b;
  const Value x = a.variable("x");
  std::vector<Value> w;
  for (const char* name : {"w0", "w1", "w2", "w3"}) w.push_back(b.variable(name));
  const auto said = [&](const Value& other) { return refusal([&] { gradient(sin(x), {other}); }); };
  EXPECT_NE(said(sum(w)).find("(sum of w0, w1, w2 …)"), std::string::npos) << said(sum(w));
  EXPECT_NE(said(w[0] * w[1] + w[2]).find(" of w0, w1, w2)"), std::string::npos) << said(w[0] * w[1] + w[2]);
  EXPECT_NE(said(b.constant(2.5)).find("(2.5)"), std::string::npos) << said(b.constant(2.5));
  EXPECT_NE(said(Value()).find(" is an empty value"), std::string::npos) << said(Value());
}

TEST(Tape, LeavesAndText) {
  Tape g;
  const Value x = g.variable("x"), k = g.parameter("k"), y = g.variable("y");
  const Value scaled = x * k;
  const Value f = scaled + sin(x);
  EXPECT_EQ(leaves_of(std::span(&f, 1)), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(g.leaf_class(1), LeafClass::parameter);
  EXPECT_EQ(print(f), "((x * k) + sin(x))");
  EXPECT_EQ(print(powi(y, -3)), "powi(y, -3)");
}

TEST(Tape, EvaluatesInThreeArithmetics) {
  Tape g;
  const Value x = g.variable("x");
  const Value f = round(x * 3) + hypot(x, 2) + select(x > 1, x, -x);
  EXPECT_DOUBLE_EQ(evaluate(f, std::vector<double>{1.5}), 5 + 2.5 + 1.5);
  EXPECT_FLOAT_EQ(evaluate(f, std::vector<float>{1.5f}), 9.0f);
  EXPECT_DOUBLE_EQ(evaluate(f, std::vector<std::complex<double>>{1.5}).real(), 9);
}

TEST(Lowering, SharesNodesAndFusesProducts) {
  Tape g;
  const Value x = g.variable("x"), y = g.variable("y");
  const Value f = x * y + sin(x * y);
  int leaves = 0;
  const Kernel k = kernel("test.lowering", [&](At<1> at, Grid<f32, 1> a, Grid<f32, 1> b, Out<f32, 1> out) {
    Lowering lower(g, Type::f32, [&](uint32_t leaf) {
      ++leaves;
      return leaf == 0 ? a[at] : b[at];
    });
    const auto grad = gradient(f, {x, y});
    out[at] = lower.as<f32>(f) + lower.as<f32>(grad[0]) * lower.as<f32>(grad[1]);
  });
  EXPECT_EQ(leaves, 2);
  int sines = 0, fused = 0, products = 0;
  for (const auto& i : k.function().instructions) {
    sines += i.op == ir::Op::sin;
    fused += i.op == ir::Op::fma;
    if (i.op == ir::Op::fmul) ++products;
  }
  EXPECT_EQ(sines, 1);
  EXPECT_GE(fused, 1);
  EXPECT_GE(products, 1);
}

TEST(Lowering, RefusesTypesThatAreNoFloats) {
  Tape g;
  EXPECT_THROW(Lowering(g, Type::i32, {}), InputError);
  EXPECT_THROW(kernel("test.leaf_of_another_type",
                      [&](At<1> at, Grid<f32, 1> in) {
                        Lowering lower(g, Type::f64, [&](uint32_t) { return in[at]; });
                        lower(g.variable("x") + 1);
                      }),
               InputError);
}

}  // namespace
}  // namespace lockstep::autodiff
