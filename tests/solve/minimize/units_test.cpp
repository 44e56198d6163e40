// Units: a fit is the same regardless of the units of its data and parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {
namespace {

/// a exp(-t / tau) + c on 20 points with a fixed disturbance, data in units of `y`, times in units of `t`; each parameter
/// a block of its own, or all in one.
struct Decay {
  Problem problem;
  std::vector<BlockSet> sets;
  std::vector<double> units;

  Decay(double y, double t, bool own_blocks) : units{y, t, y} {
    TermType type;
    type.name = "decay";
    type.slots = own_blocks ? std::vector<int>{1, 1, 1} : std::vector<int>{3};
    type.data = 2;
    type.residual = [=](const TermArguments& a) {
      const auto p = [&](int k) { return own_blocks ? a.x(k, 0) : a.x(0, k); };
      return std::vector{a.data(1) - p(0) * exp(-a.data(0) / p(1)) - p(2)};
    };
    const std::vector<double> start{0.6 * y, 2.5 * t, 0.1 * y};
    if (own_blocks)
      for (const double v : start)
        sets.push_back(problem.add_blocks("parameter", euclidean(1), std::vector{v}));
    else
      sets.push_back(problem.add_blocks("parameters", euclidean(3), start));
    std::vector<double> data;
    for (int k = 0; k < 20; ++k) {
      const double disturbed = 1.3 * std::exp(-0.3 * k / 1.7) + 0.2 + 0.01 * std::sin(5.0 * k);
      data.push_back(0.3 * k * t), data.push_back(disturbed * y);
    }
    problem.add_terms(type, sets, std::vector<int32_t>(20 * sets.size(), 0), data);
  }
  std::vector<double> parameters() const {
    std::vector<double> out;
    for (const BlockSet& set : sets)
      for (const double v : problem.values(set)) out.push_back(v);
    for (size_t k = 0; k < 3; ++k) out[k] /= units[k];
    return out;
  }
};

Context& units_context() {
  static Context context(ContextOptions{.device = "cpu"});
  return context;
}

TEST(Units, EveryMethodFindsTheSameFitInAllOfThem) {
  for (const Method method : {Method::lm, Method::gn, Method::dogleg, Method::lbfgs})
    for (const bool own_blocks : {false, true}) {
      Options options;
      options.method = method;
      options.max_iterations = 1000;
      if (method == Method::lbfgs) options.function_tolerance = 1e-14;
      Decay plain(1, 1, own_blocks);
      const Summary expected = minimize(plain.problem, units_context(), options);
      ASSERT_TRUE(converged(expected.termination)) << name(method);
      for (const double y : {1e-12, 1.0, 1e12})
        for (const double t : {1e-12, 1.0, 1e12}) {
          SCOPED_TRACE(testing::Message()
                       << name(method) << " y " << y << " t " << t << " blocks " << own_blocks);
          Decay scaled(y, t, own_blocks);
          const Summary got = minimize(scaled.problem, units_context(), options);
          EXPECT_TRUE(converged(got.termination)) << name(got.termination);
          EXPECT_NEAR(got.iterations, expected.iterations, 0.1 * expected.iterations);
          EXPECT_NEAR(got.final_cost / (y * y), expected.final_cost, 1e-9 * expected.final_cost);
          for (size_t k = 0; k < 3; ++k)
            EXPECT_NEAR(scaled.parameters()[k], plain.parameters()[k],
                        1e-6 * std::abs(plain.parameters()[k]));
        }
    }
}

TEST(Units, EveryLinearSolverDampsWithoutThem) {
  for (const Linear linear :
       {Linear::dense_qr, Linear::dense_cholesky, Linear::cholesky, Linear::pcg, Linear::device_cholesky}) {
    Options options;
    options.linear = linear;
    Decay plain(1, 1, true);
    const Summary expected = minimize(plain.problem, units_context(), options);
    for (const double y : {1e-12, 1e12}) {
      SCOPED_TRACE(testing::Message() << name(linear) << " " << y);
      Decay scaled(y, 1 / y, true);
      const Summary got = minimize(scaled.problem, units_context(), options);
      EXPECT_TRUE(converged(got.termination));
      EXPECT_NEAR(got.iterations, expected.iterations, 1);
      for (size_t k = 0; k < 3; ++k)
        EXPECT_NEAR(scaled.parameters()[k], plain.parameters()[k], 1e-6 * std::abs(plain.parameters()[k]));
    }
  }
}

TEST(Units, AStepIsSmallInEachSetByItself) {
  // A frequency of 2e14 known to 1e9, a width and a height. In one norm, the step of the frequency hides the others.
  Problem problem;
  TermType type;
  type.name = "line";
  type.slots = {1, 1, 1};
  type.data = 2;
  type.residual = [](const TermArguments& a) {
    const Value z = (a.data(0) - a.x(0, 0)) / a.x(1, 0);
    return std::vector{a.data(1) - a.x(2, 0) / (1 + z * z)};
  };
  const double center = 1.97e14, width = 1e9;
  std::vector<double> data;
  for (int k = -15; k <= 15; ++k)
    data.push_back(center + 0.3e9 * k), data.push_back(2 / (1 + 0.09 * k * k) + 0.005 * std::cos(7.0 * k));
  const std::vector<BlockSet> sets{problem.add_blocks("center", euclidean(1), std::vector{center + 0.6e9}),
                                   problem.add_blocks("width", euclidean(1), std::vector{1.8e9}),
                                   problem.add_blocks("height", euclidean(1), std::vector{1.0})};
  problem.add_terms(type, sets, std::vector<int32_t>(3 * 31, 0), data);
  const Summary summary = minimize(problem, units_context(), {});
  EXPECT_TRUE(converged(summary.termination));
  EXPECT_NEAR(problem.values(sets[0])[0], center, 0.05e9);
  EXPECT_NEAR(problem.values(sets[1])[0], width, 0.05e9);
  EXPECT_NEAR(problem.values(sets[2])[0], 2, 0.02);
}

}  // namespace
}  // namespace lockstep::solve
