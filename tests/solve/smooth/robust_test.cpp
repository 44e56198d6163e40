// Smoothers with robust losses and weights compared with problems that are minimised at once.
#include <gtest/gtest.h>

#include "../evaluate/problems.hpp"
#include "batch.hpp"
#include "core/refusal.hpp"
#include "worlds.hpp"

namespace lockstep::solve::test {
namespace {

using lockstep::test::refusal;

/// Streets where some edges back to earlier poses are wrong.
std::vector<Edge2> mistaken_streets(int poses, uint64_t seed) {
  std::vector<Edge2> edges = streets(poses, seed);
  for (size_t k = 0; k < edges.size(); ++k)
    if (edges[k].from != edges[k].to - 1 && k % 4 == 0) edges[k].z[0] += 0.3, edges[k].z[1] -= 0.2;
  return edges;
}

double weight_of(size_t edge) { return edge % 7 == 0 ? 0.25 : edge % 11 == 0 ? 4 : 1; }

TEST(Robust, SolvesAsTheBatchAfterEveryFiftyFrames) {
  Context context = cpu_context();
  const std::vector<Edge2> edges = mistaken_streets(151, 2);
  for (const char* text : {"huber:2", "cauchy:3", "soft_l1:2"}) {
    SCOPED_TRACE(text);
    const RobustLoss loss = parse_robust_loss(text);
    Drive drive(context, {}, loss);
    Smoother& smoother = drive.smoother;
    const BlockSet poses = drive.poses;
    std::vector<double> weights;
    for (size_t k = 0; k < edges.size(); ++k) {
      const Edge2& e = edges[k];
      const TermSet added = drive.add(e);
      weights.push_back(weight_of(k));
      if (weights[k] != 1) smoother.weigh(added, weights[k]);
      smoother.update();
      if (e.to % 50 != 0 || (k + 1 < edges.size() && edges[k + 1].to == e.to)) continue;
      const Batch batch(context, std::span(edges).first(k + 1), smoother.values(poses), loss, weights);
      ASSERT_LT(batch.last_step, 1e-11);
      smoother.solve(1000);
      EXPECT_NEAR(smoother.cost(), batch.cost, 1e-12 * batch.cost) << e.to;
      expect_near(smoother.values(poses), values_of(batch.problem), 1e-9, "poses");
    }
    EXPECT_GT(smoother.cost(), 10);
  }
}

/// Weights that change later give what they would have given from the beginning.
TEST(Robust, WeightsMayChangeAtAnyTime) {
  Context context = cpu_context();
  const std::vector<Edge2> edges = mistaken_streets(101, 5);
  const RobustLoss loss = parse_robust_loss("huber:3");
  std::vector<double> weights(edges.size(), 1), data;
  std::vector<int32_t> indices;
  Smoother smoother(context);
  const BlockSet poses = smoother.add_set("poses", se2());
  const FactorKind between = smoother.add_kind(se2_between_log(loss), {poses, poses});
  std::vector<double> chain{0, 0, 0};
  for (const Edge2& e : edges) {
    if (e.from == e.to - 1) {
      const std::vector<double> next = compose2({chain.end() - 3, chain.end()}, e.z);
      chain.insert(chain.end(), next.begin(), next.end());
    }
    indices.insert(indices.end(), {e.from, e.to});
    const std::vector<double> row = row2(e.z);
    data.insert(data.end(), row.begin(), row.end());
  }
  smoother.append_blocks(poses, chain);
  smoother.fix(poses, 0);
  const TermSet all = smoother.add_terms(between, indices, data);
  smoother.solve(1000);
  const double whole = smoother.cost();
  smoother.weigh(all, 9);
  EXPECT_NEAR(smoother.cost(), 9 * whole, 1e-12 * whole);  // at once, before an update
  for (size_t k = 0; k < weights.size(); ++k)
    weights[k] = edges[k].from != edges[k].to - 1 && k % 4 == 0 ? 0 : weight_of(k);
  smoother.weigh(all, weights);
  const int64_t eliminated = smoother.update().eliminated;
  EXPECT_GT(eliminated, 0);
  smoother.solve(1000);
  const Batch batch(context, edges, smoother.values(poses), loss, weights);
  expect_near(smoother.values(poses), values_of(batch.problem), 1e-9, "poses");
  EXPECT_NEAR(smoother.cost(), batch.cost, 1e-12 * batch.cost);
  EXPECT_LT(smoother.cost(), 0.5 * whole);
  // The same problem for others has the weights.
  EXPECT_NEAR(evaluate(smoother.problem(), context).cost, batch.cost, 1e-12 * batch.cost);
}

TEST(Robust, WeightsOfWhatLeftStayInThePrior) {
  Context context = cpu_context();
  const TermType wish{"wish", {1}, 1, [](const TermArguments& a) { return std::vector{a.x(0) - a.data(0)}; }};
  const TermType tie{"tie", {1, 1}, 0, [](const TermArguments& a) { return std::vector{a.x(1) - a.x(0)}; }};
  SmootherOptions options;
  options.lag = 1;
  Smoother smoother(context, options);
  const BlockSet x = smoother.add_set("x", euclidean(1));
  const FactorKind wishes = smoother.add_kind(wish, {x}), ties = smoother.add_kind(tie, {x, x});
  smoother.append_blocks(x, std::vector<double>{0, 0}, 0);
  const TermSet first = smoother.add_terms(wishes, std::vector<int32_t>{0, 1}, std::vector<double>{2, 5});
  smoother.add_terms(ties, std::vector<int32_t>{0, 1}, {});
  smoother.weigh(first, std::vector<double>{3, 1});
  smoother.update();
  smoother.touch(x, 1, 10);
  EXPECT_EQ(smoother.update().left, 1);
  // Eliminating x0 from 3/2 (x0 - 2)^2 + 1/2 (x1 - x0)^2 leaves 3/8 (x1 - 2)^2.
  EXPECT_NEAR(smoother.value(x, 1)[0], (0.75 * 2 + 5) / 1.75, 1e-12);
  smoother.weigh(first, std::vector<double>{100, 0.5});  // of x1 alone
  smoother.update();
  EXPECT_NEAR(smoother.value(x, 1)[0], (0.75 * 2 + 0.5 * 5) / 1.25, 1e-12);
  const std::pair<BlockSet, int64_t> one[] = {{x, 1}};
  EXPECT_NEAR(smoother.covariance(one)[0], 1 / 1.25, 1e-12);

  const auto says = [&](const auto& work, const char* part) {
    EXPECT_NE(refusal(work).find(part), std::string::npos) << refusal(work);
  };
  says([&] { smoother.weigh(first, -1.0); }, "weight -1 of instance 0");
  says([&] { smoother.weigh(first, std::vector<double>{1, NAN}); }, "weight nan of instance 1");
  says([&] { smoother.weigh(first, std::vector<double>{1, 2, 3}); }, "3 weights");
  says([&] { smoother.weigh(TermSet{7}, 1.0); }, "term set 7 of another smoother");
  smoother.erase(first);
  says([&] { smoother.weigh(first, 1.0); }, "of which nothing is left");
}

}  // namespace
}  // namespace lockstep::solve::test
