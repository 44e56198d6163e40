// A smoother of poses in the plane with bounds and held coordinates, compared with problems that are minimised at once.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "../evaluate/problems.hpp"
#include "core/refusal.hpp"
#include "worlds.hpp"

namespace lockstep::solve::test {
namespace {

using lockstep::test::refusal;

// Lanes around the first estimates, some of whose borders hold the poses.
TEST(SmootherBounds, EqualTheBatchAfterEveryFiftyFrames) {
  Context context = cpu_context();
  const std::vector<Edge2> edges = streets(201, 2);
  for (const double lag : {double(INFINITY), 30.0}) {
    SmootherOptions window;
    window.lag = lag;
    Drive drive(context, window);
    Smoother& smoother = drive.smoother;
    int64_t compared = 0, at_bound = 0;
    std::map<int64_t, std::pair<double, double>> lanes;
    for (size_t k = 0; k < edges.size(); ++k) {
      const Edge2& e = edges[k];
      if (e.from < e.to - lag) continue;
      drive.add(e);
      if (e.from == e.to - 1) {
        const std::vector<double> at = smoother.value(drive.poses, e.to);
        lanes[e.to] = {at[1] - 0.05, at[1] + 0.01};
        smoother.bound(drive.poses, e.to, 1, lanes[e.to].first, lanes[e.to].second);
        if (e.to % 3 == 0) smoother.bound(drive.poses, e.to, 0, -INFINITY, at[0] + 0.02);
        if (e.to % 5 == 0 && std::abs(at[2]) < 2)
          smoother.bound(drive.poses, e.to, 2, at[2] - 0.01, at[2] + 0.01);
        if (e.to % 8 == 0) smoother.fix_coordinates(drive.poses, e.to, std::vector<int>{0});
      }
      smoother.update();
      for (const int64_t pose : smoother.block_numbers(drive.poses)) {
        if (pose == 0) continue;
        const double y = smoother.value(drive.poses, pose)[1];
        const auto& [low, high] = lanes.at(pose);
        ASSERT_TRUE(y >= low && y <= high) << pose;
        at_bound += y == low || y == high;
      }
      if (e.to % 50 != 0 || (k + 1 < edges.size() && edges[k + 1].to == e.to)) continue;
      smoother.solve(1000);
      Problem batch = smoother.problem();
      Options options;
      options.function_tolerance = 1e-16, options.gradient_tolerance = 1e-15, options.max_iterations = 500;
      const double cost = minimize(batch, context, options).final_cost;
      if (std::isinf(lag)) {  // priors have a constant, which the problem leaves out
        EXPECT_NEAR(smoother.cost(), cost, 1e-10 * cost);
      }
      expect_near(smoother.values(drive.poses), values_of(batch), 1e-7, "poses");
      ++compared;
    }
    EXPECT_EQ(compared, 4);
    EXPECT_GT(at_bound, 100);
  }
}

/// Coordinates that are held have no covariance, and the others that of the problem where these are held.
TEST(SmootherBounds, CovariancesAreThoseOfWhatMoves) {
  Context context = cpu_context();
  Drive drive(context);
  for (const Edge2& e : streets(30, 3)) drive.add(e);
  drive.smoother.fix_coordinates(drive.poses, 20, std::vector<int>{1, 2});
  drive.smoother.solve();
  const std::pair<BlockSet, int64_t> pair[] = {{drive.poses, 20}, {drive.poses, 29}};
  const std::vector<double> own = drive.smoother.covariance(pair);
  const Problem problem = drive.smoother.problem();
  const BlockSet same{0, problem.number()};
  const std::pair<BlockSet, int64_t> both[] = {{same, 20}, {same, 29}};
  expect_near(own, covariance(problem, context, both), 1e-9, "covariance");
  EXPECT_EQ(own[7], 0);
  EXPECT_GT(own[0], 0);
  // Free again, it is that of the whole problem.
  drive.smoother.fix_coordinates(drive.poses, 20, {});
  drive.smoother.solve();
  EXPECT_GT(drive.smoother.covariance(pair)[7], 0);
}

TEST(SmootherBounds, ThatDoNotFitAreRefused) {
  Context context = cpu_context();
  Drive drive(context);
  for (const Edge2& e : streets(10, 3)) drive.add(e);
  Smoother& s = drive.smoother;
  s.update();
  const std::vector<double> before = s.values(drive.poses);
  const auto says = [&](const auto& work, const char* part) {
    EXPECT_NE(refusal(work).find(part), std::string::npos) << refusal(work);
  };
  says([&] { s.bound(drive.poses, 3, 3, 0, 1); }, "component 3 of poses");
  says([&] { s.bound(drive.poses, 3, 1, 1, 0); }, "bounds 1 and 0 of block 3 of poses");
  says([&] { s.bound(drive.poses, 3, 1, NAN, 0); }, "bounds nan and 0");
  says([&] { s.bound(drive.poses, 3, 2, 0, INFINITY); }, "of an angle of poses");
  says([&] { s.bound(drive.poses, 77, 1, 0, 1); }, "block 77 of poses");
  says([&] { s.fix_coordinates(drive.poses, 3, std::vector<int>{3}); }, "tangent coordinate 3 of poses");
  const BlockSet turns = s.add_set("turns", se3());
  s.append_blocks(turns, std::vector<double>{0, 0, 0, 1, 0, 0, 0});
  says([&] { s.bound(turns, 0, 0, 0, 1); }, "a bound of number 0 of turns, on se3");
  s.fix(turns, 0);
  s.update();
  EXPECT_EQ(s.values(drive.poses), before);
}

}  // namespace
}  // namespace lockstep::solve::test
