// Formulas in text: values, ranks of operators, errors with their column.
#include "solve/datasets/expression.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>
#include <string>

#include "io/fuzz/fuzz_files.hpp"
#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

double value(const char* text, const std::map<std::string, double>& at = {}) {
  return Expression::parse(text).evaluate(at);
}
std::string error(const std::string& text) {
  try {
    Expression::parse(text, "here");
  } catch (const InputError& e) { return e.what(); }
  return "";
}

TEST(Expression, Numbers) {
  EXPECT_EQ(value("1"), 1);
  EXPECT_EQ(value("-.5"), -0.5);
  EXPECT_EQ(value("2."), 2);
  EXPECT_EQ(value("3.5E-2"), 0.035);
  EXPECT_EQ(value("1e3 + 2e+1"), 1020);
  EXPECT_EQ(value("pi"), std::numbers::pi);
}

TEST(Expression, RanksOfOperators) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("8 / 4 / 2"), 1);
  EXPECT_EQ(value("8 - 4 - 2"), 2);
  EXPECT_EQ(value("2 ** 3 ** 2"), 512);
  EXPECT_EQ(value("2 ^ 3 ^ 2"), 512);
  EXPECT_EQ(value("-2 ^ 2"), -4);
  EXPECT_EQ(value("2 ** -1"), 0.5);
  EXPECT_EQ(value("2 * -3"), -6);
  EXPECT_EQ(value("--2"), 2);
  EXPECT_EQ(value("+2 - -3"), 5);
  EXPECT_EQ(value("[1 + 2] * (3 - [1])"), 6);
  EXPECT_EQ(value("4*-a**2", {{"a", 3}}), -36);
}

TEST(Expression, Functions) {
  EXPECT_DOUBLE_EQ(value("exp[1] - EXP(1)"), 0);
  EXPECT_DOUBLE_EQ(value("log(exp(2)) + ln[exp(3)]"), 5);
  EXPECT_DOUBLE_EQ(value("log10(1000) + log2(8)"), 6);
  EXPECT_DOUBLE_EQ(value("arctan[1] * 4"), std::numbers::pi);
  EXPECT_DOUBLE_EQ(value("atan2(1, -1)"), std::atan2(1, -1));
  EXPECT_DOUBLE_EQ(value("pow(2, 0.5) - sqrt(2)"), 0);
  EXPECT_DOUBLE_EQ(value("sin(0.3)^2 + cos(0.3)^2"), 1);
  EXPECT_DOUBLE_EQ(value("tanh(0.4) - sinh(0.4) / cosh(0.4) + 1"), 1);
  EXPECT_DOUBLE_EQ(value("asin(0.5) + acos(0.5)"), std::numbers::pi / 2);
  EXPECT_DOUBLE_EQ(value("sigmoid(0) + rsqrt(4) + exp2(3) + fmod(7, 4)"), 12);
  EXPECT_DOUBLE_EQ(value("abs(-3) + min(1, 2) + max(1, 2) + mod(7, 4)"), 9);
  EXPECT_DOUBLE_EQ(
      value("(b1/b2) * exp[-0.5*((x-b3)/b2)**2]", {{"b1", 1.5}, {"b2", 4}, {"b3", 450}, {"x", 452}}),
      1.5 / 4 * std::exp(-0.125));
}

// Shapes of lines by what their parameters mean: areas, half widths, heights, periods.
TEST(Expression, ShapesOfLines) {
  std::map<std::string, double> at = {
      {"amplitude", 1.7}, {"center", 0.4}, {"sigma", 0.6},     {"gamma", 0.3},   {"fraction", 0.3},
      {"beta", 1.5},      {"decay", 2.5},  {"exponent", 1.25}, {"frequency", 3}, {"shift", 0.2},
      {"a", 2},           {"b", 3},        {"c", 5},           {"slope", 6},     {"intercept", 7}};
  const auto shape = [&](const std::string& name, double x) {
    at["x"] = x;
    return value((name + "(x)").c_str(), at);
  };
  // Over all x = middle + tan(angle), by the midpoint rule, whose error is that of a periodic function.
  const auto area = [&](const std::string& name) {
    double sum = 0;
    for (int k = 0; k < 400; ++k) {
      const double angle = std::numbers::pi * ((k + 0.5) / 400 - 0.5), x = 0.4 + std::tan(angle);
      sum += std::numbers::pi / 400 * shape(name, x) / std::pow(std::cos(angle), 2);
    }
    return sum / 1.7;
  };
  for (const char* name : {"gaussian", "lorentzian", "pseudo_voigt", "voigt"})
    EXPECT_NEAR(area(name), 1, 1e-9) << name;
  double lognormal = 0;  // in logarithms, in which it is a Gaussian
  for (int k = -60; k <= 60; ++k)
    lognormal += 0.1 * std::exp(0.1 * k) * shape("lognormal", std::exp(0.1 * k));
  EXPECT_NEAR(lognormal / 1.7, 1, 1e-9);
  EXPECT_NEAR(shape("lognormal", std::exp(0.4 + 0.6)) / shape("lognormal", std::exp(0.4)),
              std::exp(-0.5 - 0.6), 1e-12);
  EXPECT_NEAR(shape("gaussian", 1.0) / shape("gaussian", 0.4), std::exp(-0.5), 1e-14) << "sigma away";
  for (const char* half : {"lorentzian", "pseudo_voigt"})
    for (const double x : {1.0, -0.2})
      EXPECT_NEAR(shape(half, x) / shape(half, 0.4), 0.5, 1e-14) << half << " " << x;
  EXPECT_NEAR(shape("moffat", 0.4), 1.7, 1e-14);
  EXPECT_NEAR(shape("moffat", 1.0), 1.7 * std::pow(2, -1.5), 1e-14);
  EXPECT_NEAR(shape("logistic_step", 0.4), 0.85, 1e-14);
  EXPECT_NEAR(shape("logistic_step", 0.4 + 0.6 * std::log(3)), 1.7 * 0.75, 1e-14);
  EXPECT_NEAR(shape("logistic_step", -30), 0, 1e-14);
  EXPECT_NEAR(shape("exponential", 0), 1.7, 1e-14);
  EXPECT_NEAR(shape("exponential", 2.5) / 1.7, std::exp(-1), 1e-14);
  EXPECT_NEAR(shape("power_law", 2) / shape("power_law", 1), std::pow(2, 1.25), 1e-14);
  EXPECT_NEAR(shape("sine", (std::numbers::pi / 2 - 0.2) / 3), 1.7, 1e-14);
  EXPECT_NEAR(shape("sine", -0.2 / 3), 0, 1e-14);
  EXPECT_EQ(shape("constant", 9), 5);
  EXPECT_EQ(shape("linear", 2), 19);
  EXPECT_EQ(shape("quadratic", 2), 8 + 6 + 5);
}

TEST(Expression, NamesInTheOrderOfUse) {
  const Expression e = Expression::parse("b2*x + b1*cos(2*pi*x/b2) + e_1");
  EXPECT_EQ(e.names(), (std::vector<std::string>{"b2", "x", "b1", "e_1"}));
  EXPECT_THROW(e.evaluate({{"b2", 1}}), InputError);
}

TEST(Expression, DerivativesAreTheGraphs) {
  const Expression e = Expression::parse("a*exp(-b*t) + c");
  autodiff::Tape graph;
  const autodiff::Value v = e.build(graph, [&](const std::string& name) { return graph.variable(name); });
  const std::vector<autodiff::Value> g = autodiff::gradient(v, {graph.leaf_value(0), graph.leaf_value(1)});
  const std::vector<double> at = autodiff::evaluate<double>(g, std::vector<double>{2, 0.5, 3, 1});
  EXPECT_DOUBLE_EQ(at[0], std::exp(-1.5));
  EXPECT_DOUBLE_EQ(at[1], -6 * std::exp(-1.5));
  EXPECT_LT(autodiff::check_gradient(v, {2, 0.5, 3, 1}).max_error, 1e-14);
}

TEST(Expression, ErrorsNameTheColumn) {
  EXPECT_NE(error("1 + ").find("here, column 5"), std::string::npos) << error("1 + ");
  EXPECT_NE(error("(1 + 2").find("expected \")\""), std::string::npos) << error("(1 + 2");
  EXPECT_NE(error("(1 + 2]").find("column 7"), std::string::npos) << error("(1 + 2]");
  EXPECT_NE(error("a $ b").find("\"$\""), std::string::npos) << error("a $ b");
  EXPECT_NE(error("foo(1)").find("unknown function \"foo\""), std::string::npos) << error("foo(1)");
  EXPECT_NE(error("foo(1)").find("mod, faddeeva, "), std::string::npos) << error("foo(1)");
  EXPECT_NE(error("a(1)").find("column 1"), std::string::npos) << error("a(1)");
  EXPECT_NE(error("atan2(1)").find("1 arguments"), std::string::npos) << error("atan2(1)");
  EXPECT_NE(error("faddeeva(1)").find("1 arguments"), std::string::npos) << error("faddeeva(1)");
  EXPECT_NE(error("2x").find("column 2"), std::string::npos) << error("2x");
  EXPECT_NE(error("1e999").find("number"), std::string::npos) << error("1e999");
  for (const char* text :
       {"", "   ", "*", "1 +* 2", ")", "a b", "sin", "1..2", "exp()", "min(1,)", "a = b"}) {
    if (std::string(text) == "sin") continue;  // a name like any other
    EXPECT_NE(error(text), "") << text;
  }
  EXPECT_NE(error(std::string(2000, '(')), "");
  EXPECT_NE(error(std::string(2000, '-') + "1"), "");
  std::string sum = "x";
  for (int k = 0; k < 4990; ++k) sum += "+x";
  EXPECT_EQ(error(sum), "");
  EXPECT_EQ(Expression::parse(sum).evaluate({{"x", 1}}), 4991);
  EXPECT_NE(error(sum + sum), "");
}

double faddeeva(double x, double y) { return value("faddeeva(x, y)", {{"x", x}, {"y", y}}); }

TEST(Expression, FaddeevaHasItsClosedForms) {
  for (const double v : {0.0, 1e-3, 0.3, 1.0, 2.5, 5.0}) {
    EXPECT_NEAR(faddeeva(v, 0), std::exp(-v * v), 2e-15) << v;
    EXPECT_NEAR(faddeeva(0, v), std::exp(v * v) * std::erfc(v), 3e-15) << v;
    EXPECT_EQ(faddeeva(v, -0.4), faddeeva(-v, 0.4)) << v;
  }
  // Far out it is Lorentz' curve: y / sqrt(pi) / (x^2 + y^2) (1 + (3 x^2 - y^2) / (2 (x^2 + y^2)^2) + …).
  for (const auto& [x, y] : {std::pair(3e3, 1e-3), {3e3, 2.0}, {10.0, 4e3}, {1e6, 1e-6}}) {
    const double s = x * x + y * y, first = (3 * x * x - y * y) / (2 * s * s);
    EXPECT_NEAR(faddeeva(x, y) / (y / std::sqrt(M_PI) / s * (1 + first)), 1, y < 1e-2 ? 1e-6 : 1e-10) << x;
  }
}

/// y/pi times the integral of exp(-t^2) / ((x - t)^2 + y^2), by the trapezoidal rule, which converges as exp(-2 pi y / h).
TEST(Expression, FaddeevaIsTheConvolutionOfGaussAndLorentz) {
  constexpr double kStep = 1.0 / 64;
  for (const double y : {0.12, 0.5, 2.0})
    for (double x = 0; x < 8; x += 0.37) {
      double sum = 0;
      for (int k = -64 * 9; k <= 64 * 9; ++k) {
        const double t = k * kStep;
        sum += std::exp(-t * t) / ((x - t) * (x - t) + y * y);
      }
      EXPECT_NEAR(faddeeva(x, y) / (y / M_PI * kStep * sum), 1, 1e-12) << x << " " << y;
    }
}

TEST(Expression, MutatedFormulasAreReadOrRefused) {
  const std::vector<lockstep::test::Bytes> seeds{
      lockstep::test::bytes_of("(b1/b2) * exp[-0.5*((x-b3)/b2)**2]"),
      lockstep::test::bytes_of("b1 / ((1+exp[b2-b3*x])**(1/b4))"),
      lockstep::test::bytes_of("b1 - b2*x - arctan[b3/(x-b4)]/pi"),
      lockstep::test::bytes_of("pow(a, 2.5E-3) + min(b, atan2(c, -.5))^-d")};
  lockstep::test::fuzz(seeds, [](const lockstep::test::Bytes& bytes) {
    const Expression e =
        Expression::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "fuzz");
    std::map<std::string, double> at;
    for (const std::string& name : e.names()) at[name] = 0.7;
    e.evaluate(at);
  });
}

}  // namespace
}  // namespace lockstep::solve
