// A smoother compared with problems that are built again and minimised at once.
#include "lockstep/solve/smoother.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "../evaluate/problems.hpp"
#include "batch.hpp"
#include "io/test_data.hpp"
#include "lockstep/solve/covariance.hpp"
#include "solve/datasets/g2o.hpp"
#include "worlds.hpp"

namespace lockstep::solve::test {
namespace {

TEST(Smoother, SolvesAsTheBatchAfterEveryFiftyFrames) {
  Context context = cpu_context();
  const std::vector<Edge2> edges = streets(301, 2);
  Drive drive(context);
  int64_t eliminated = 0, most = 0;
  for (size_t k = 0; k < edges.size(); ++k) {  // edge by edge
    drive.add(edges[k]);
    eliminated += drive.smoother.update().eliminated;
    most += edges[k].to;
    if (edges[k].to % 50 != 0 || (k + 1 < edges.size() && edges[k + 1].to == edges[k].to)) continue;
    const Batch batch(context, std::span(edges).first(k + 1), drive.smoother.values(drive.poses));
    EXPECT_NEAR(drive.smoother.cost(), batch.cost, 2e-3 * batch.cost) << edges[k].to;
    drive.smoother.solve();
    EXPECT_NEAR(drive.smoother.cost(), batch.cost, 1e-12 * batch.cost);
    expect_near(drive.smoother.values(drive.poses), values_of(batch.problem), 1e-9, "poses");
    const std::pair<BlockSet, int64_t> ends[] = {{drive.poses, 3}, {drive.poses, edges[k].to}};
    const std::pair<BlockSet, int64_t> same[] = {{batch.poses, 3}, {batch.poses, edges[k].to}};
    expect_near(drive.smoother.covariance(ends), Covariance(batch.problem, context).joint(same), 1e-7,
                "covariance");
  }
  EXPECT_LT(eliminated, most / 3);  // a part of the tree
}

TEST(Smoother, OfLinearTermsIsTheBatchAtOnce) {
  Context context = cpu_context();
  SmootherOptions options;
  options.relinearize = 1e9, options.propagate = 0;
  Smoother smoother(context, options);
  const BlockSet points = smoother.add_set("points", euclidean(2));
  const TermType offset{"offset", {2, 2}, 2, [](const TermArguments& a) {
                          return std::vector{a.x(1, 0) - a.x(0, 0) - a.data(0),
                                             a.x(1, 1) - a.x(0, 1) - a.data(1)};
                        }};
  const TermType place{"place", {2}, 2, [](const TermArguments& a) {
                         return std::vector{3 * (a.x(0, 0) - a.data(0)), a.x(0, 1) + a.x(0, 0) - a.data(1)};
                       }};
  const FactorKind between = smoother.add_kind(offset, {points, points}),
                   prior = smoother.add_kind(place, {points});
  const std::vector<double> numbers = random_numbers(4000, 7);
  std::mt19937_64 engine(9);
  size_t next = 0;
  std::vector<TermSet> loops;
  for (int32_t k = 0; k < 150; ++k) {
    smoother.append_blocks(points, std::span(numbers).subspan(next += 2, 2));
    if (k % 20 == 0)
      smoother.add_terms(prior, std::vector<int32_t>{k}, std::span(numbers).subspan(next += 2, 2));
    if (k > 0)
      smoother.add_terms(between, std::vector<int32_t>{k - 1, k}, std::span(numbers).subspan(next += 2, 2));
    if (k > 5 && k % 3 == 0)
      loops.push_back(smoother.add_terms(between, std::vector<int32_t>{int32_t(engine() % uint64_t(k)), k},
                                         std::span(numbers).subspan(next += 2, 2)));
    if (k % 10 == 9 && !loops.empty()) smoother.erase(loops[engine() % loops.size()]);
    smoother.update();
    Problem batch = smoother.problem();
    const double cost = smoother.cost();
    EXPECT_NEAR(minimize(batch, context).final_cost, cost, 1e-10 * (1 + cost)) << k;
    expect_near(smoother.values(points), values_of(batch), 1e-9, "points");
  }
}

TEST(Smoother, TakesRobustLossesAndHostTerms) {
  Context context = cpu_context();
  const std::vector<Edge2> edges = streets(60, 4);
  const RobustLoss loss{RobustLoss::Kind::huber, 1.0};
  Smoother smoother(context);
  const BlockSet poses = smoother.add_set("poses", se2());
  const FactorKind between = smoother.add_kind(se2_between_log(loss), {poses, poses});
  HostTerm range{"range", {3}, 1, 1, [](const HostInstance& at, std::span<double> r) {
                   r[0] = 10 * (std::hypot(at.blocks[0][0], at.blocks[0][1]) - at.data[0]);
                 }};
  const FactorKind ranges = smoother.add_kind(range, {poses});
  std::vector<double> values{0, 0, 0};
  smoother.append_blocks(poses, values);
  smoother.fix(poses, 0);
  for (const Edge2& e : edges) {
    if (e.from == e.to - 1) smoother.append_blocks(poses, compose2(smoother.value(poses, e.from), e.z));
    std::vector<double> z = e.z;
    if (e.to % 17 == 0) z[0] += 0.4;  // an outlier
    smoother.add_terms(between, std::vector<int32_t>{e.from, e.to}, row2(z));
    if (e.to % 5 == 0) {
      const std::vector<double> at = smoother.value(poses, e.to);
      smoother.add_terms(ranges, std::vector<int32_t>{e.to},
                         std::vector<double>{std::hypot(at[0], at[1]) + 0.05});
    }
    smoother.update();
  }
  smoother.solve();
  Problem batch = smoother.problem();
  Options options;
  options.function_tolerance = 1e-16;
  const double cost = minimize(batch, context, options).final_cost;
  EXPECT_GT(cost, 1);
  EXPECT_NEAR(smoother.cost(), cost, 1e-10 * cost);
  expect_near(smoother.values(poses), values_of(batch), 1e-6, "poses");
}

TEST(Smoother, OfTheIntelGraphEndsAtTheBatchMinimum) {
  const std::filesystem::path file = lockstep::test::data_folder() / "solve/g2o/intel.g2o";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is absent";
  const io::PoseGraph graph = io::read_g2o(file);
  const std::vector<double> rows = edge_data(graph);
  std::vector<size_t> order(size_t(graph.edge_count()));
  std::iota(order.begin(), order.end(), size_t(0));
  const auto later = [&](size_t e) { return std::max(graph.edges[2 * e], graph.edges[2 * e + 1]); };
  std::ranges::stable_sort(order, {}, later);
  Context context = cpu_context();
  Smoother smoother(context);
  const BlockSet poses = smoother.add_set("poses", se2());
  const FactorKind edge = smoother.add_kind(se2_edge(), {poses, poses});
  smoother.append_blocks(poses, std::span(graph.poses).first(3));
  smoother.fix(poses, 0);
  int64_t count = 1;
  for (const size_t e : order) {
    const int32_t from = graph.edges[2 * e], to = graph.edges[2 * e + 1];
    if (later(e) == count) {
      ASSERT_EQ(to, from + 1);
      const double* const z = graph.measurements.data() + 3 * e;
      smoother.append_blocks(poses, compose2(smoother.value(poses, from), {z[0], z[1], z[2]}));
      ++count;
    }
    smoother.add_terms(edge, std::vector<int32_t>{from, to}, std::span(rows).subspan(11 * e, 11));
    smoother.update();
  }
  PoseGraphProblem batch = build(graph);
  const double cost = minimize(batch.problem, context).final_cost;
  EXPECT_NEAR(smoother.cost(), cost, 1e-2 * cost);
  smoother.solve();
  EXPECT_NEAR(smoother.cost(), cost, 1e-6 * cost);
}

TEST(Smoother, HasTheSameBitsForAnyNumberOfThreads) {
  const std::vector<Edge2> edges = streets(160, 6);
  std::vector<double> first;
  for (const int threads : {1, 2, 5}) {
    Context context = cpu_context(threads);
    Drive drive(context);
    for (const Edge2& e : edges) drive.add(e), drive.smoother.update();
    std::vector<double> got = drive.smoother.values(drive.poses);
    const std::pair<BlockSet, int64_t> one[] = {{drive.poses, 100}};
    for (const double v : drive.smoother.covariance(one)) got.push_back(v);
    if (first.empty()) first = got;
    EXPECT_EQ(got, first) << threads;
  }
}

}  // namespace
}  // namespace lockstep::solve::test
