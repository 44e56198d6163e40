// Operations that are made of rows against complex steps, random graphs, kinks and guards.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {
namespace {

struct OpCase {
  const char* name;
  std::function<Value(const Value&, const Value&)> make;
  double low, high;  // range of both operands
  double tolerance = 1e-13;
};

std::vector<OpCase> op_cases() {
  using V = const Value&;
  return {
      {"sum", [](V a, V b) { return sum({a * b, a, b * b, sin(a)}); }, -2, 2},
      {"mean",
       [](V a, V b) {
         const Value t[] = {a * b, a, b};
         return mean(t);
       },
       -2, 2},
      {"sign", [](V a, V b) { return sign(a) * b; }, -2, 2},
      {"clamp", [](V a, V b) { return clamp(a, -0.5, 1) * b; }, -2, 2},
      {"round", [](V a, V b) { return round(a) * b; }, -2, 2},
      {"pow constant", [](V a, V b) { return pow(a, 2.5) * b; }, 0.2, 3},
      {"powi 5", [](V a, V b) { return powi(a, 5) * b; }, -2, 2},
      {"powi -3", [](V a, V b) { return powi(a, -3) * b; }, 0.4, 2},
      {"square cube", [](V a, V b) { return square(a) + cube(b); }, -2, 2},
      {"reciprocal", [](V a, V b) { return reciprocal(a) * b; }, 0.3, 2},
      {"relu", [](V a, V b) { return relu(a) * b; }, -2, 2},
      {"select", [](V a, V b) { return select((a < b && !(a < -1)) || b > 1.5, a * b, sin(a) - b); }, -2, 2},
      {"number", [](V a, V b) { return number(a <= b) * a + number(not_equal(a, b)) * b; }, -2, 2},
      {"stop", [](V a, V b) { return a * stop_gradient(number(b > 0)) + b; }, -2, 2},
      {"safe_sqrt", [](V a, V b) { return safe_sqrt(a) * b; }, -2, 2},
      {"safe_rsqrt", [](V a, V b) { return safe_rsqrt(a, 0.1) * b; }, -2, 2},
      {"safe_div", [](V a, V b) { return safe_div(a, b, 0.3); }, -2, 2},
      {"safe_log", [](V a, V b) { return safe_log(a, 0.1) * b; }, -2, 2},
      {"safe_acos", [](V a, V b) { return safe_acos(a) * b; }, -1.5, 0.95},
      {"safe_asin", [](V a, V b) { return safe_asin(a) * b; }, -1.5, 0.95},
      {"safe_atan2", [](V a, V b) { return safe_atan2(a, b); }, -2, 2},
      {"safe_pow", [](V a, V b) { return safe_pow(a, b); }, -2, 2},
  };
}

TEST(Derivatives, OperationsMadeOfRowsEqualComplexSteps) {
  std::mt19937 random(7);
  for (const OpCase& c : op_cases()) {
    Tape g;
    const Value a = g.variable("a"), b = g.variable("b");
    const Value f = c.make(a, b);
    std::uniform_real_distribution<double> range(c.low, c.high);
    for (int n = 0; n < 50; ++n) {
      const std::vector<double> at{range(random), range(random)};
      const GradientCheck check = check_gradient(f, at);
      EXPECT_LE(check.max_error, c.tolerance) << c.name << " at " << at[0] << ", " << at[1];
      EXPECT_LE(check.forward_error, c.tolerance) << c.name << " at " << at[0] << ", " << at[1];
    }
  }
}

/// Smooth operations only, so that no kink lies on the path.
Value random_expression(std::mt19937& random, std::vector<Value>& pool, int steps) {
  const auto pick = [&] { return pool[random() % pool.size()]; };
  for (int n = 0; n < steps; ++n) {
    const Value a = pick(), b = pick();
    switch (random() % 14) {
      case 0: pool.push_back(a + b); break;
      case 1: pool.push_back(a - b); break;
      case 2: pool.push_back(tanh(a) * b); break;
      case 3: pool.push_back(a / (2 + b * b)); break;
      case 4: pool.push_back(sin(a)); break;
      case 5: pool.push_back(exp(-a * a)); break;
      case 6: pool.push_back(sqrt(1 + a * a)); break;
      case 7: pool.push_back(log(1.5 + cos(b))); break;
      case 8: pool.push_back(select(a < b, a * 0.5, b * tanh(a))); break;
      case 9: pool.push_back(sum({a, b, pick(), sin(pick())})); break;
      case 10: pool.push_back(atan2(1 + a * a, b)); break;
      case 11: pool.push_back(sigmoid(a) - softplus(b)); break;
      case 12: pool.push_back(powi(tanh(a), 3) + cosh(tanh(b))); break;
      default: pool.push_back(min(a, b) + 0.25 * max(a, tanh(b))); break;
    }
  }
  return pool.back() * pool[pool.size() / 2];
}

TEST(Derivatives, RandomGraphsEqualComplexSteps) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> range(-1.3, 1.3);
  for (int n = 0; n < 400; ++n) {
    Tape g;
    std::vector<Value> pool;
    std::vector<double> at;
    for (int k = 0; k < 5; ++k)
      pool.push_back(g.variable("x" + std::to_string(k))), at.push_back(range(random));
    const Value f = random_expression(random, pool, 25);
    const GradientCheck check = check_gradient(f, at);
    EXPECT_LE(check.max_error, 1e-11) << "graph " << n << ": " << g.size() << " nodes";
    EXPECT_LE(check.forward_error, 1e-11) << "graph " << n;
  }
}

TEST(Derivatives, ForwardAndReverseAgreeAsTransposes) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> range(-1, 1);
  for (int n = 0; n < 50; ++n) {
    Tape g;
    std::vector<Value> pool, inputs;
    std::vector<double> at;
    for (int k = 0; k < 4; ++k)
      pool.push_back(g.variable("x" + std::to_string(k))), at.push_back(range(random));
    inputs = pool;
    random_expression(random, pool, 20);
    const std::vector<Value> outputs(pool.end() - 3, pool.end());
    std::vector<Value> seeds, tangents;
    for (size_t k = 0; k < outputs.size(); ++k) seeds.push_back(g.constant(range(random)));
    for (size_t k = 0; k < inputs.size(); ++k) tangents.push_back(g.constant(range(random)));
    const Value left = sum([&] {
      auto t = jvp(outputs, inputs, tangents);
      for (size_t k = 0; k < t.size(); ++k) t[k] = t[k] * seeds[k];
      return t;
    }());
    const Value right = sum([&] {
      auto t = vjp(outputs, seeds, inputs);
      for (size_t k = 0; k < t.size(); ++k) t[k] = t[k] * tangents[k];
      return t;
    }());
    const double l = evaluate(left, at), r = evaluate(right, at);
    EXPECT_NEAR(l, r, 1e-12 * std::max(1.0, std::abs(l)));
  }
}

TEST(Derivatives, SecondDerivativeByDifferentiatingTwice) {
  Tape g;
  const Value x = g.variable("x"), y = g.variable("y");
  const Value f = exp(x * y) * sin(x) + pow(y, 3.0) * x;
  const Value fx = gradient(f, {x})[0];
  const std::vector<double> at{0.4, 1.3};
  EXPECT_LE(check_gradient(fx, at).max_error, 1e-13);
  const std::vector<Value> hessian = gradient(fx, {x, y});
  const double xy = 0.4 * 1.3, e = std::exp(xy);
  EXPECT_NEAR(evaluate<double>(hessian, at)[1],
              e * (std::sin(0.4) + xy * std::sin(0.4) + 0.4 * std::cos(0.4)) + 3 * 1.3 * 1.3, 1e-12);
}

TEST(Derivatives, KinksFollowTheStatedRules) {
  Tape g;
  const Value x = g.variable("x"), y = g.variable("y");
  const auto d = [&](const Value& f, double a, double b) {
    return evaluate<double>(gradient(f, {x, y}), {a, b});
  };
  EXPECT_EQ(d(abs(x), 0, 0)[0], 1);
  EXPECT_EQ(d(relu(x), 0, 0)[0], 0);
  EXPECT_EQ(d(min(x, y), 2, 2), (std::vector<double>{1, 0}));
  EXPECT_EQ(d(max(x, y), 2, 2), (std::vector<double>{1, 0}));
  EXPECT_EQ(d(min(x, y), 3, 2), (std::vector<double>{0, 1}));
  EXPECT_EQ(d(clamp(x, -1, 1), 1, 0)[0], 1);
  EXPECT_EQ(d(clamp(x, -1, 1), 1.5, 0)[0], 0);
  EXPECT_EQ(d(floor(x) + rint(y), 0.5, 0.5), (std::vector<double>{0, 0}));
  EXPECT_EQ(d(fmod(x, y), 7, 2), (std::vector<double>{1, -3}));
  EXPECT_EQ(d(fmod(x, y), 1, 0.1), (std::vector<double>{1, -9}));  // 1 / 0.1 rounds to 10
}

TEST(Derivatives, GuardsAreFiniteWhereTheFunctionIsNot) {
  Tape g;
  const Value x = g.variable("x"), y = g.variable("y");
  for (const Value& f : {safe_sqrt(x), safe_rsqrt(x), safe_div(y, x), safe_log(x),
                         safe_atan2(x, y - y * y / 1.0), safe_pow(x, y)}) {
    const auto d = evaluate<double>(gradient(f, {x, y}), {0, 1});
    EXPECT_TRUE(std::isfinite(evaluate(f, std::vector<double>{0, 1}))) << print(f);
    EXPECT_TRUE(std::isfinite(d[0]) && std::isfinite(d[1])) << print(f);
    EXPECT_EQ(d[0], 0) << print(f);
  }
  EXPECT_EQ(evaluate<double>(gradient(safe_acos(x), {x}), {1.0})[0], 0);
  EXPECT_EQ(evaluate(safe_acos(x), std::vector<double>{1.0}), 0);
  EXPECT_NEAR(evaluate(safe_acos(x), std::vector<double>{-3.0}), 3.14159265358979, 1e-14);
  EXPECT_NEAR(evaluate(safe_asin(x), std::vector<double>{-3.0}), -1.5707963267949, 1e-13);
}

TEST(Derivatives, SoftplusAndSigmoidDoNotOverflow) {
  Tape g;
  const Value x = g.variable("x");
  EXPECT_EQ(evaluate(softplus(x), std::vector<double>{1000}), 1000);
  EXPECT_EQ(evaluate(softplus(x), std::vector<double>{-1000}), 0);
  EXPECT_EQ(evaluate(gradient(softplus(x), {x})[0], std::vector<double>{1000}), 1);
  EXPECT_EQ(evaluate(sigmoid(x), std::vector<double>{-1000}), 0);
}

}  // namespace
}  // namespace lockstep::autodiff
