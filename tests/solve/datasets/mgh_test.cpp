// Known minima of the problems of Moré, Garbow and Hillstrom, to four digits of the sum of squares or better.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "lockstep/solve.hpp"
#include "solve/datasets/mgh_problems.hpp"
#include "solve/reference.hpp"

namespace lockstep::solve {
namespace {

using test::MghProblem;

struct Built {
  Problem problem;
  BlockSet set;
};
Built build(const MghProblem& mgh) {
  Built out;
  const int n = int(mgh.start.size());
  out.set = out.problem.add_blocks("x", euclidean(n), mgh.start);
  const TermType type{mgh.name, {n}, 0, [&](const TermArguments& a) { return mgh.residuals(a.block(0)); }};
  out.problem.add_terms(type, {out.set}, std::vector<int32_t>{0}, {});
  return out;
}
/// Digits of the nearest minimum; zeros by their size.
double digits(double sum, const std::vector<double>& minima) {
  double best = 0;
  for (const double minimum : minima)
    best = std::max(best, minimum == 0 ? -0.5 * std::log10(std::max(sum, 1e-300))
                                       : -std::log10(std::max(std::abs(sum - minimum) / minimum, 1e-16)));
  return best;
}

class Mgh : public ::testing::TestWithParam<MghProblem> {};

TEST_P(Mgh, ReachesAKnownMinimum) {
  Context context(ContextOptions{.device = "cpu"});
  for (const Method method : {Method::lm, Method::dogleg, Method::lbfgs}) {
    // Powell's steps zigzag along the curved valleys of these two without end.
    if (method == Method::dogleg && (GetParam().number == 11 || GetParam().number == 18)) continue;
    // From its start the scaled gradient leads to a stationary point that is no minimum.
    if (method == Method::lbfgs && GetParam().number == 12) continue;
    Built built = build(GetParam());
    Options options;
    options.method = method;
    options.max_iterations = 3000;
    options.function_tolerance = 0;
    options.gradient_tolerance = 1e-14;
    const Summary summary = minimize(built.problem, context, options);
    const double found = digits(2 * summary.final_cost, GetParam().minima);
    if (std::getenv("LOCKSTEP_MGH_TABLE"))
      fmt::print("{:2} {:24} {:7} digits {:5.1f} its {:5} {} {:.10e}\n", GetParam().number, GetParam().name,
                 name(method), found, summary.iterations, name(summary.termination), 2 * summary.final_cost);
    EXPECT_GE(found, 4) << name(method) << " " << 2 * summary.final_cost << " " << name(summary.termination);
  }
}

TEST_P(Mgh, GradientsAreComplexSteps) {
  Built built = build(GetParam());
  std::vector<double> x = GetParam().start;
  for (size_t k = 0; k < x.size(); ++k) x[k] += 0.01 * double(k + 1);  // off the start's symmetries and kinks
  autodiff::Tape graph;
  std::vector<Value> leaves;
  for (size_t k = 0; k < x.size(); ++k) leaves.push_back(graph.variable("x"));
  std::vector<Value> squares;
  for (const Value& r : GetParam().residuals(leaves)) squares.push_back(square(r));
  const Value cost = 0.5 * autodiff::sum(squares);
  EXPECT_LT(autodiff::check_gradient(cost, x).max_error, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Problems, Mgh, ::testing::ValuesIn(test::mgh_problems()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace lockstep::solve
