// The strong Wolfe search on functions of one variable.
#include "optimize/line_search.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lockstep::optimize {
namespace {

using Function = std::function<LinePoint(double)>;

void expect_wolfe(const LineResult& result, const LinePoint& start, const WolfeConditions& c = {}) {
  ASSERT_TRUE(result.ok);
  EXPECT_LE(result.point.value, start.value + c.decrease * result.point.t * start.slope);
  EXPECT_LE(std::abs(result.point.slope), c.curvature * std::abs(start.slope));
}

TEST(StrongWolfe, FindsAStepFromManyFirstTrials) {
  // The three kinds of More and Thuente: smooth, nearly flat, and bent close to the start.
  const std::vector<Function> functions{
      [](double t) { return LinePoint{t, -t / (t * t + 2), (t * t - 2) / ((t * t + 2) * (t * t + 2))}; },
      [](double t) {
        const double b = 0.004, u = t + b;
        return LinePoint{t, std::pow(u, 5) - 2 * std::pow(u, 4), 5 * std::pow(u, 4) - 8 * std::pow(u, 3)};
      },
      [](double t) { return LinePoint{t, (t - 3) * (t - 3), 2 * (t - 3)}; },
      [](double t) { return LinePoint{t, std::cosh(t - 5), std::sinh(t - 5)}; },
  };
  for (size_t k = 0; k < functions.size(); ++k)
    for (const double first : {1e-3, 1e-1, 1.0, 1e1, 1e3}) {
      SCOPED_TRACE(testing::Message() << "function " << k << " from " << first);
      WolfeConditions conditions;
      conditions.curvature = 0.1;
      const LinePoint start = functions[k](0);
      double last = 0;
      const LineResult result = strong_wolfe(
          [&](double t) {
            last = t;
            return functions[k](t);
          },
          start, first, conditions);
      expect_wolfe(result, start, conditions);
      EXPECT_EQ(result.point.t, last);  // the point whose gradient the caller holds
    }
}

// A trial whose slope is not negative, or that is higher than the one before it, encloses a minimum: no later trial is beyond it.
TEST(StrongWolfe, NoTrialBeyondAnEnclosedMinimum) {
  const std::vector<Function> functions{
      [](double t) { return LinePoint{t, 0.1 * (t - 1.5) * (t - 1.5), 0.2 * (t - 1.5)}; },
      [](double t) { return LinePoint{t, std::cosh(t - 5), std::sinh(t - 5)}; },
      // Falls at 1 by as much as at 0, is higher at 2 and still falls there.
      [](double t) {
        return LinePoint{t, -t + 1.5 * std::sin(4 * t - 4) * t / 4,
                         -1 + 1.5 * (std::cos(4 * t - 4) * t + std::sin(4 * t - 4) / 4)};
      },
      [](double t) {
        const double far = std::max(t - 1, 0.0);
        return LinePoint{t, -t + 4 * far - 3 * far * far, -1 + (t > 1 ? 4 - 6 * far : 0)};
      },
  };
  for (size_t k = 0; k < functions.size(); ++k)
    for (const double first : {0.01, 0.5, 1.0, 3.0, 40.0}) {
      SCOPED_TRACE(testing::Message() << "function " << k << " from " << first);
      std::vector<LinePoint> trials;
      WolfeConditions conditions;
      conditions.curvature = 0.1;
      strong_wolfe(
          [&](double t) {
            trials.push_back(functions[k](t));
            return trials.back();
          },
          functions[k](0), first, conditions);
      double end = INFINITY;
      for (size_t n = 0; n < trials.size(); ++n) {
        EXPECT_LE(trials[n].t, end) << "trial " << n + 1;
        if (end == INFINITY && (trials[n].slope >= 0 || (n > 0 && trials[n].value >= trials[n - 1].value)))
          end = trials[n].t;
      }
    }
}

TEST(StrongWolfe, PassesOverValuesThatAreNotFinite) {
  const auto phi = [](double t) {  // a logarithm's wall at 2
    return LinePoint{t, -t - std::log(2 - t), -1 + 1 / (2 - t)};
  };
  const LinePoint start{0, -std::log(2.0), -0.5};
  const LineResult result = strong_wolfe(phi, start, 50);
  expect_wolfe(result, start);
  EXPECT_LT(result.point.t, 2);
}

TEST(StrongWolfe, ReportsWhereNothingFalls) {
  const LineResult result = strong_wolfe([](double t) { return LinePoint{t, 1 + t, 1}; }, {0, 1, -1}, 1);
  EXPECT_FALSE(result.ok);
  EXPECT_FALSE(result.lower);
  EXPECT_GT(result.trials, 5);
}

// Nocedal and Wright 2006, algorithm 3.6: a point that is not lower than the low end becomes the other end.
TEST(StrongWolfe, APointAsLowAsTheLowEndBoundsTheInterval) {
  const LinePoint answers[] = {{0, -0.5, -0.95}, {0, 5, 3}, {0, -0.5, -0.95}, {0, -0.6, 0}};
  std::vector<double> asked;
  const LineResult result = strong_wolfe(
      [&](double t) {
        asked.push_back(t);
        LinePoint p = answers[std::min<size_t>(asked.size(), 4) - 1];
        p.t = t;
        return p;
      },
      {0, 0, -1}, 1);
  EXPECT_TRUE(result.ok);
  ASSERT_EQ(asked.size(), 4u);
  EXPECT_EQ(asked[1], 10);  // at most ten times as far
  EXPECT_TRUE(asked[2] > asked[0] && asked[2] < asked[1]) << asked[2];
  EXPECT_TRUE(asked[3] > asked[0] && asked[3] < asked[2]) << asked[3];
}

TEST(StrongWolfe, StopsOnAFallWithoutEnd) {
  WolfeConditions conditions;
  conditions.longest = 1e6;
  const LineResult result =
      strong_wolfe([](double t) { return LinePoint{t, -t, -1}; }, {0, 0, -1}, 1, conditions);
  EXPECT_FALSE(result.ok);
  EXPECT_TRUE(result.lower);
  EXPECT_EQ(result.point.t, 1e6);
}

TEST(StrongWolfe, TrustsTheSlopeWithinRounding) {
  // Values that no longer show the fall: 1e8 + (t - 1)^2 1e-9.
  const auto phi = [](double t) { return LinePoint{t, 1e8 + 1e-9 * (t - 1) * (t - 1), 2e-9 * (t - 1)}; };
  WolfeConditions conditions;
  conditions.curvature = 0.5;
  const LineResult result = strong_wolfe(phi, phi(0), 1.2, conditions);
  EXPECT_TRUE(result.ok);
}

}  // namespace
}  // namespace lockstep::optimize
