// Bounds that are no numbers of the state's storage, and the report of what happened.
#include <gtest/gtest.h>

#include <algorithm>

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
