// Summary::notes: parts that no residual connects, unknowns without effect, gauges; nothing where all is determined.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>

#include "lockstep/solve/factors.hpp"
#include "lockstep/solve/run.hpp"

namespace lockstep::solve {
namespace {

Context& notes_context() {
  static Context context(ContextOptions{.device = "cpu"});
  return context;
}
using Notes = std::vector<std::string>;

/// Poses of the plane in a row, each connected with the next but for those of `gaps`; the first is fixed on demand.
struct Chain {
  Problem problem;
  BlockSet poses;

  Chain(int count, const std::vector<int>& gaps, bool fixed) {
    std::vector<double> values, data;
    std::vector<int32_t> edges;
    const std::vector<double> step{1, 0.1, 0.05}, w{2, 0, 0, 3, 0, 4};
    for (int k = 0; k < count; ++k) {
      values.insert(values.end(), {k + 0.1, 0.2 * k, 0.1});
      if (k == 0 || std::find(gaps.begin(), gaps.end(), k) != gaps.end()) continue;
      edges.insert(edges.end(), {k - 1, k});
      const std::vector<double> row = se2_between_data(step, w);
      data.insert(data.end(), row.begin(), row.end());
    }
    poses = problem.add_blocks("poses", se2(), values);
    problem.add_terms(se2_between(), {poses, poses}, edges, data);
    if (fixed) problem.fix(poses, 0);
  }
};

TEST(Notes, NothingIsSaidWhereAllIsDetermined) {
  for (const Method method : {Method::lm, Method::dogleg, Method::gn, Method::lbfgs}) {
    Chain chain(6, {}, true);
    Options options;
    options.method = method;
    EXPECT_EQ(minimize(chain.problem, notes_context(), options).notes, Notes()) << name(method);
  }
}

// Gauss-Newton fails at a matrix that is singular, and says whose it is.
TEST(Notes, AGraphInPartsAndItsGauge) {
  for (const Method method : {Method::lm, Method::dogleg, Method::gn, Method::lbfgs}) {
    Options options;
    options.method = method;
    Chain chain(9, {6}, true);
    const Summary summary = minimize(chain.problem, notes_context(), options);
    EXPECT_EQ(
        summary.notes,
        (Notes{"2 parts that no residual connects, of 3 to 5 blocks; the smallest: poses 6, poses 7, poses 8",
               "3 directions change no residual to first order: poses 6, poses 7, poses 8"}))
        << name(method);
    EXPECT_NE(report(summary).find("\nNote: 2 parts that no residual connects"), std::string::npos);
    EXPECT_NE(to_json(summary).find("\"notes\":[\"2 parts"), std::string::npos);
  }
  Options options;  // a method without J sees the parts
  options.method = Method::adam;
  Chain chain(9, {6}, true);
  EXPECT_EQ(minimize(chain.problem, notes_context(), options).notes.size(), 1u);
}

TEST(Notes, AGaugeOfTheWhole) {
  Chain chain(5, {}, false);
  const Summary summary = minimize(chain.problem, notes_context());
  EXPECT_TRUE(converged(summary.termination));
  EXPECT_EQ(summary.notes,
            (Notes{"3 directions change no residual to first order: all blocks, which may move "
                   "together (a gauge): fix() one"}));
  chain.problem.fix_coordinates(chain.poses, 2, std::vector<int>{0, 1, 2});
  EXPECT_EQ(minimize(chain.problem, notes_context()).notes, Notes());
}

// An error of exactly 180° is the largest that vec q can be: no slope, which is reported. Off it, and by the logarithm at it
// too, the pose is found.
TEST(Notes, AHalfTurnOfVecQ) {
  const auto poses_after = [](bool by_log, double angle, Method method, Summary& summary) {
    const std::vector<double> z{1, 2, 3, 1, 0, 0, 0},
        w = w_from_standard_deviations(std::vector<double>(6, 1.0));
    const double s = std::sin(angle / 2);
    Problem problem;
    const BlockSet pose = problem.add_blocks(
        "pose", se3(), std::vector<double>{1, 2, 3, std::cos(angle / 2), 0.6 * s, 0.0, 0.8 * s});
    problem.add_terms(by_log ? se3_pose_prior_log() : se3_pose_prior(), {pose}, std::vector<int32_t>{0},
                      se3_between_log_data(z, w));
    Options options;
    options.method = method;
    summary = minimize(problem, notes_context(), options);
    return std::abs(problem.values(pose)[3]);
  };
  const double half = std::numbers::pi;
  for (const Method method : {Method::lm, Method::dogleg, Method::gn, Method::lbfgs}) {
    SCOPED_TRACE(name(method));
    Summary summary;
    EXPECT_LT(poses_after(false, half, method, summary), 1e-9);
    EXPECT_NEAR(summary.final_cost, 0.5, 1e-9);
    EXPECT_EQ(summary.notes, (Notes{"1 direction changes no residual to first order: pose"}));
    EXPECT_NEAR(poses_after(false, half - 1e-2, method, summary), 1, 1e-9);
    EXPECT_EQ(summary.notes, Notes());
    EXPECT_NEAR(poses_after(true, half - 1e-9, method, summary), 1, 1e-9);
    EXPECT_EQ(summary.notes, Notes());
  }
}

TEST(Notes, UnknownsWithoutEffect) {
  for (const Method method : {Method::lm, Method::dogleg}) {
    Options options;
    options.method = method;
    Problem problem;
    const BlockSet points = problem.add_blocks("points", euclidean(2), std::vector<double>{3, 4, 5, 6, 7, 8});
    const TermType height{
        "height", {2}, 1, [](const TermArguments& a) { return std::vector{a.x(0, 1) - a.data(0)}; }};
    const TermType whole{
        "whole", {2}, 0, [](const TermArguments& a) { return std::vector{a.x(0, 0), a.x(0, 1)}; }};
    problem.add_terms(height, {points}, std::vector<int32_t>{1}, std::vector<double>{2});
    problem.add_terms(whole, {points}, std::vector<int32_t>{0, 2}, {});
    const Summary summary = minimize(problem, notes_context(), options);
    ASSERT_EQ(summary.notes.size(), 2u) << name(method);
    EXPECT_EQ(summary.notes[1], "1 direction changes no residual to first order: points 1");
    EXPECT_EQ(problem.values(points)[2], 5);
  }
}

TEST(Notes, AreNotLostToHugeUnits) {
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(1), std::vector<double>{1e14}),
                 y = problem.add_blocks("y", euclidean(1), std::vector<double>{1e-14});
  const TermType type{"two", {1, 1}, 2, [](const TermArguments& a) {
                        return std::vector{a.data(0) * a.x(0, 0) + a.data(1) * a.x(1, 0) - 3};
                      }};
  problem.add_terms(type, {x, y}, std::vector<int32_t>{0, 0, 0, 0},
                    std::vector<double>{1e-14, 1e14, 1e-14, 2e14});
  EXPECT_EQ(minimize(problem, notes_context()).notes, Notes());
}

}  // namespace
}  // namespace lockstep::solve
