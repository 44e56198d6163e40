// Bounds that are no numbers of the state's storage, and the report of what happened.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/refusal.hpp"
#include "lockstep/solve/run.hpp"
#include "solve/minimize/problems.hpp"

namespace lockstep::solve {
namespace {

/// 1/2 (x - 2)^2 + 1/2 (y - x)^2 with x at most 1.3, which f32 rounds down and 1.7, which it rounds up.
TEST(Bounds, AreHeldInSinglePrecision) {
  Context context({.device = "cpu"});
  for (const double bound : {1.3, 1.7, 0.1})
    for (const Method method : {Method::lm, Method::dogleg, Method::lbfgs})
      for (const Precision precision : {Precision::f32, Precision::mixed, Precision::f64}) {
        SCOPED_TRACE(std::string(name(method)) + " " + std::string(name(precision)) + " " +
                     std::to_string(bound));
        Problem problem;
        const std::vector<double> start{0, 5};
        const BlockSet x = problem.add_blocks("x", euclidean(1), start);
        const TermType wish{
            "wish", {1}, 1, [](const TermArguments& a) { return std::vector{a.x(0) - a.data(0)}; }};
        const TermType tie{
            "tie", {1, 1}, 0, [](const TermArguments& a) { return std::vector{a.x(1) - a.x(0)}; }};
        problem.add_terms(wish, {x}, std::vector<int32_t>{0}, std::vector<double>{2});
        problem.add_terms(tie, {x, x}, std::vector<int32_t>{0, 1}, {});
        problem.bound(x, 0, 0, -10, bound);
        Options options;
        options.method = method, options.precision = precision;
        options.gradient_tolerance = precision == Precision::f64 ? 1e-12 : 1e-5;
        const Summary summary = minimize(problem, context, options);
        EXPECT_TRUE(converged(summary.termination)) << name(summary.termination);
        // The gradient of x pushes out of the bound with 2 - bound; held, it does not count.
        EXPECT_LT(summary.gradient_max, 1e-4);
        EXPECT_NEAR(problem.values(x)[0], bound, 1e-7);
        EXPECT_LE(problem.values(x)[0], bound);
        EXPECT_NEAR(problem.values(x)[1], bound, 1e-4);
      }
}

/// 1/2 |x - wish|^2 over all numbers of a block.
Problem wished(const Manifold& manifold, const std::vector<double>& start, const std::vector<double>& wish,
               BlockSet& set) {
  Problem problem;
  set = problem.add_blocks("x", manifold, start);
  const int size = manifold.ambient;
  const TermType type{"wish", {size}, size, [size](const TermArguments& a) {
                        std::vector<Value> r;
                        for (int k = 0; k < size; ++k) r.push_back(a.x(0, k) - a.data(k));
                        return r;
                      }};
  problem.add_terms(type, {set}, std::vector<int32_t>{0}, wish);
  return problem;
}

// Numbers that a tangent coordinate moves alone are bounded like Euclidean ones, regardless of their neighbours.
// The minimum is the target if it is within the bounds, else the bound.
TEST(Bounds, HoldForEuclideanPartsAndAngles) {
  Context context({.device = "cpu"});
  for (const Method method : {Method::lm, Method::dogleg, Method::gn, Method::lbfgs}) {
    SCOPED_TRACE(std::string(name(method)));
    Options options;
    options.method = method, options.max_iterations = 300, options.function_tolerance = 1e-14;
    BlockSet x;
    // A direction, then two numbers.
    Problem part = wished(product(sphere2(), euclidean(2)), {0, 0, 1, 0, 0}, {0, 0.6, 0.8, 3, -2}, x);
    part.bound(x, 0, 3, -1, 1.25);
    part.bound(x, 0, 4, -5, 5);
    EXPECT_TRUE(converged(minimize(part, context, options).termination));
    EXPECT_EQ(part.values(x)[3], 1.25);
    EXPECT_NEAR(part.values(x)[4], -2, 1e-6);
    EXPECT_NEAR(part.values(x)[1], 0.6, 1e-6);
    // The third number moves by the second coordinate.
    Problem held = wished(subset(euclidean(3), {1}), {0, 0, 0}, {1, 1, 1}, x);
    held.bound(x, 0, 2, 0, 0.5);
    minimize(held, context, options);
    EXPECT_NEAR(held.values(x)[0], 1, 1e-7);
    EXPECT_EQ(held.values(x)[1], 0);
    EXPECT_EQ(held.values(x)[2], 0.5);
    Problem angle = wished(so2(), {0.25}, {-2}, x);
    angle.bound(x, 0, 0, -1.5, 3);
    minimize(angle, context, options);
    EXPECT_EQ(angle.values(x)[0], -1.5);
    Problem pose = wished(se2(), {0, 0, 3}, {2, 2, 1}, x);
    pose.bound(x, 0, 1, -1, 0.5), pose.bound(x, 0, 2, 2, 3.1);
    minimize(pose, context, options);
    EXPECT_NEAR(pose.values(x)[0], 2, 1e-7);
    EXPECT_EQ(pose.values(x)[1], 0.5);
    EXPECT_EQ(pose.values(x)[2], 2);
  }
}

/// a exp(-b t) + c with outliers and a at its bound, through which the gradient pulls strongly: b and c are found in as few
/// steps as where a is held for good.
TEST(Bounds, AGradientOutOfABoundDoesNotSlowTheOthers) {
  Context context({.device = "cpu"});
  const TermType decay{"decay", {3}, 2, [](const TermArguments& a) {
                         return std::vector{a.x(0, 0) * exp(-a.x(0, 1) * a.data(0)) + a.x(0, 2) - a.data(1)};
                       }};
  std::vector<double> rows;
  for (int k = 0; k < 40; ++k) {
    const double t = k / 8.0;
    rows.insert(rows.end(), {t, 3 * std::exp(-1.3 * t) + 0.5 + (k == 7 ? 4 : k == 20 ? -3 : 0)});
  }
  const auto found = [&](Method method, bool held, int64_t& iterations) {
    Problem problem;
    const BlockSet x = problem.add_blocks("x", euclidean(3), std::vector<double>{held ? 2.5 : 2, 1, 0.1});
    problem.add_terms(decay, {x}, std::vector<int32_t>(40, 0), rows);
    const int first[] = {0};
    if (held)
      problem.fix_coordinates(x, 0, first);
    else
      problem.bound(x, 0, 0, 0, 2.5);
    Options options;
    options.method = method, options.function_tolerance = 1e-12, options.max_iterations = 500;
    const Summary summary = minimize(problem, context, options);
    EXPECT_TRUE(converged(summary.termination)) << summary.message;
    iterations = summary.iterations;
    const auto values = problem.values(x);
    return std::vector<double>(values.begin(), values.end());
  };
  for (const Method method : {Method::lm, Method::dogleg}) {
    SCOPED_TRACE(name(method));
    int64_t free = 0, fixed = 0;
    const std::vector<double> bounded = found(method, false, free), expected = found(method, true, fixed);
    EXPECT_EQ(bounded[0], 2.5);
    for (size_t k = 1; k < 3; ++k) EXPECT_NEAR(bounded[k], expected[k], 1e-4);
    EXPECT_LE(free, fixed + 25);
    EXPECT_LE(fixed, 40);
  }
}

TEST(Bounds, OfOtherNumbersAreRefused) {
  using lockstep::test::refusal;
  BlockSet x;
  Problem pose = wished(se3(), {0, 0, 0, 1, 0, 0, 0}, {1, 0, 0, 1, 0, 0, 0}, x);
  EXPECT_NE(refusal([&] { pose.bound(x, 0, 0, 0, 1); }).find("a bound of number 0 of x, on se3"),
            std::string::npos);
  Problem part = wished(subset(euclidean(2), {0}), {0, 0}, {1, 1}, x);
  EXPECT_NE(refusal([&] { part.bound(x, 0, 0, 0, 1); }).find("a bound of number 0 of x"), std::string::npos);
  Problem angle = wished(so2(), {0}, {1}, x);
  for (const auto& [low, high] :
       {std::pair(0.0, 4.0), std::pair(-4.0, 0.0), std::pair(0.0, double(INFINITY))})
    EXPECT_NE(refusal([&] { angle.bound(x, 0, 0, low, high); }).find("of an angle of x"), std::string::npos);
}

TEST(Report, HasTenIterationsUnlessMoreAreAskedFor) {
  Summary summary;
  for (int k = 1; k <= 25; ++k) {
    Iteration row;
    row.iteration = k;
    summary.trace.push_back(row);
  }
  const auto rows = [](const std::string& text) {
    const size_t table = text.find("\n iter ");
    return std::count(text.begin() + std::ptrdiff_t(table), text.end(), '\n') - 2;
  };
  const std::string usual = report(summary);
  EXPECT_EQ(rows(usual), 11);
  EXPECT_NE(usual.find("15 iterations"), std::string::npos);
  EXPECT_NE(usual.find("\n    5 "), std::string::npos);
  EXPECT_EQ(usual.find("\n    6 "), std::string::npos);
  EXPECT_EQ(usual.find("\n   20 "), std::string::npos);
  EXPECT_NE(usual.find("\n   25 "), std::string::npos);
  EXPECT_EQ(rows(report(summary, 25)), 25);
  EXPECT_EQ(rows(report(summary, 1)), 2);
  summary.trace.resize(10);
  EXPECT_EQ(rows(report(summary)), 10);
}

}  // namespace
}  // namespace lockstep::solve
