// A fixed-lag smoother compared with marginalize(), its errors, and its memory.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>

#include "../evaluate/problems.hpp"
#include "core/refusal.hpp"
#include "lockstep/solve/marginalize.hpp"
#include "worlds.hpp"

namespace lockstep::solve::test {
namespace {

using lockstep::test::refusal;

/// Noisy moves between poses in space k and k + 1, k and k + 2, k and k + 5.
struct Moves {
  std::vector<std::vector<double>> z;  // of the steps 1, 2 and 5 to pose k, row by row
  explicit Moves(int frames) {
    const std::vector<double> numbers = random_numbers(size_t(frames) * 18, 11);
    for (int k = 0; k < frames; ++k)
      for (int s = 0; s < 3; ++s) {
        const double* const off = numbers.data() + (3 * k + s) * 6;
        const double steps = s == 2 ? 5 : s + 1;
        std::vector<double> q{1, 0.05 * steps + 0.01 * off[3], 0.01 * off[4], 0.08 * steps + 0.01 * off[5]};
        double n = 0;
        for (const double v : q) n += v * v;
        for (double& v : q) v /= std::sqrt(n);
        z.push_back({0.5 * steps + 0.02 * off[0], 0.02 * off[1], 0.02 * off[2], q[0], q[1], q[2], q[3]});
      }
  }
};

std::vector<double> row3(const std::vector<double>& z) {
  return se3_between_log_data(
      z, w_from_standard_deviations(std::vector<double>{0.02, 0.02, 0.02, 0.01, 0.01, 0.01}));
}

std::vector<double> compose3(const std::vector<double>& a, const std::vector<double>& b) {
  autodiff::Tape graph;
  std::vector<Value> x, y;
  for (int k = 0; k < 7; ++k) x.push_back(graph.variable("a"));
  for (int k = 0; k < 7; ++k) y.push_back(graph.variable("b"));
  std::vector<double> leaves = a;
  leaves.insert(leaves.end(), b.begin(), b.end());
  std::vector<double> out = autodiff::evaluate<double>(se3_compose(x, y), leaves);
  normalize_rows(out, 7, 3, 4);
  return out;
}

TEST(Window, IsTheBatchWithMarginalizedBlocks) {
  constexpr int kLag = 8, kFrames = 40;
  const Moves moves(kFrames);
  Context context = cpu_context();
  SmootherOptions lag;
  lag.lag = kLag;
  Smoother smoother(context, lag);
  const BlockSet own = smoother.add_set("poses", se3());
  const FactorKind prior = smoother.add_kind(se3_pose_prior_log(), {own});
  const FactorKind between = smoother.add_kind(se3_between_log(), {own, own});
  std::vector<double> newest{0, 0, 0, 1, 0, 0, 0};
  Problem problem;
  const BlockSet poses = problem.add_blocks("poses", se3(), newest);
  problem.add_terms(se3_pose_prior_log(), {poses}, std::vector<int32_t>{0}, row3(newest));
  smoother.append_blocks(own, newest, 0);
  smoother.add_terms(prior, std::vector<int32_t>{0}, row3(newest));
  Options options;
  options.function_tolerance = 1e-16, options.gradient_tolerance = 1e-15;
  for (int k = 1; k < kFrames; ++k) {
    newest = compose3(smoother.value(own, k - 1), moves.z[size_t(3 * k)]);
    if (k > kLag) marginalize(problem, context, poses, std::vector<int64_t>{k - kLag - 1});
    problem.append_blocks(poses, newest);
    smoother.append_blocks(own, newest, k);
    for (const int s : {0, 1, 2}) {
      const int step = s == 2 ? 5 : s + 1;
      if (step > k) continue;
      const std::vector<int32_t> pair{k - step, k};
      problem.add_terms(se3_between_log(), {poses, poses}, pair, row3(moves.z[size_t(3 * k + s)]));
      smoother.add_terms(between, pair, row3(moves.z[size_t(3 * k + s)]));
    }
    const double cost = minimize(problem, context, options).final_cost;
    smoother.solve();
    ASSERT_EQ(smoother.block_numbers(own), problem.block_numbers(poses));
    const auto expected = std::as_const(problem).values(poses);
    expect_near(smoother.values(own), {expected.begin(), expected.end()}, 1e-9, "poses");
    if (k > kLag + 5) {
      Problem same = smoother.problem();
      minimize(same, context, options);
      EXPECT_GT(cost, 0.1);
      expect_near(values_of(same), {expected.begin(), expected.end()}, 1e-8, "of the problem");
    }
  }
}

TEST(Window, WithoutRelinearisationStaysNear) {
  constexpr int kFrames = 120;
  const Moves moves(kFrames);
  Context context = cpu_context();
  std::vector<std::vector<double>> ends;
  for (const double lag : {10.0, 1e9}) {
    SmootherOptions options;
    options.lag = lag;
    Smoother smoother(context, options);
    const BlockSet own = smoother.add_set("poses", se3());
    const FactorKind prior = smoother.add_kind(se3_pose_prior_log(), {own});
    const FactorKind between = smoother.add_kind(se3_between_log(), {own, own});
    std::vector<double> newest{0, 0, 0, 1, 0, 0, 0};
    smoother.append_blocks(own, newest, 0);
    smoother.add_terms(prior, std::vector<int32_t>{0}, row3(newest));
    for (int k = 1; k < kFrames; ++k) {
      newest = compose3(smoother.value(own, k - 1), moves.z[size_t(3 * k)]);
      smoother.append_blocks(own, newest, k);
      for (const int s : {0, 1, 2})
        if (const int step = s == 2 ? 5 : s + 1; step <= k)
          smoother.add_terms(between, std::vector<int32_t>{k - step, k}, row3(moves.z[size_t(3 * k + s)]));
      smoother.update();
    }
    EXPECT_EQ(int64_t(smoother.block_numbers(own).size()), lag > 1e6 ? kFrames : 11);
    ends.push_back(smoother.value(own, kFrames - 1));
  }
  // No edge is longer than the lag, so that the window knows what the whole knows.
  expect_near(ends[0], ends[1], 1e-3, "the last pose");
}

TEST(Window, KeepsBlocksThatAreTouchedAndHasSeveralSets) {
  Context context = cpu_context();
  SmootherOptions options;
  options.lag = 5;
  Smoother smoother(context, options);
  const BlockSet poses = smoother.add_set("poses", se2()), marks = smoother.add_set("marks", euclidean(2));
  const FactorKind between = smoother.add_kind(se2_between_log(), {poses, poses});
  const FactorKind sight = smoother.add_kind(se2_point(), {poses, marks}),
                   prior = smoother.add_kind(se2_pose_prior_log(), {poses});
  const std::vector<double> w = w_from_standard_deviations(std::vector<double>{0.1, 0.1});
  smoother.append_blocks(marks, std::vector<double>{2, 1, 3, -1}, 0);
  for (int32_t k = 0; k < 30; ++k) {
    smoother.append_blocks(poses, std::vector<double>{0.1 * k, 0, 0}, k);
    if (k == 0)
      smoother.add_terms(prior, std::vector<int32_t>{0}, row2({0, 0, 0}));
    else
      smoother.add_terms(between, std::vector<int32_t>{k - 1, k}, row2({0.1, 0, 0}));
    smoother.add_terms(sight, std::vector<int32_t>{k, 0}, point_data(std::vector<double>{2 - 0.1 * k, 1}, w));
    if (k < 3)
      smoother.add_terms(sight, std::vector<int32_t>{k, 1},
                         point_data(std::vector<double>{3 - 0.1 * k, -1}, w));
    smoother.touch(marks, 0, k);
    smoother.update();
  }
  EXPECT_EQ(smoother.block_numbers(marks), (std::vector<int64_t>{0}));
  EXPECT_EQ(smoother.block_numbers(poses), (std::vector<int64_t>{24, 25, 26, 27, 28, 29}));
  expect_near(smoother.value(poses, 29), {2.9, 0, 0}, 1e-6, "pose");
  expect_near(smoother.value(marks, 0), {2, 1}, 1e-6, "mark");
  EXPECT_NE(refusal([&] { smoother.value(marks, 1); }).find("block 1 of marks, which left the window"),
            std::string::npos);
}

TEST(Window, IsUnchangedAfterErrors) {
  Context context = cpu_context();
  SmootherOptions options;
  options.lag = 20;
  Drive good(context, options), troubled(context, options), other(context);
  const std::vector<Edge2> edges = streets(90, 8);
  for (size_t k = 0; k < edges.size(); ++k) {
    const Edge2& e = edges[k];
    if (e.from < e.to - 20) continue;
    for (Drive* d : {&good, &troubled}) d->add(e);
    Smoother& s = troubled.smoother;
    if (k == 40) {
      const auto says = [&](const auto& work, const char* part) {
        EXPECT_NE(refusal(work).find(part), std::string::npos) << refusal(work);
      };
      const std::vector<int32_t> last{e.to - 1, e.to};
      says([&] { s.add_terms(troubled.between, std::vector<int32_t>{e.to, e.to + 1}, row2(e.z)); },
           "term se2_between_log, slot 1 of instance 0");
      says([&] { s.add_terms(troubled.between, std::vector<int32_t>{1, e.to}, row2(e.z)); },
           "left the window");
      says([&] { s.add_terms(other.between, last, row2(e.z)); }, "of another smoother");
      says([&] { s.add_terms(troubled.between, last, std::vector<double>(10, 1.0)); }, "10 data");
      says([&] { s.add_terms(troubled.between, last, std::vector<double>(11, NAN)); },
           "datum 0 of instance 0 is nan");
      says([&] { s.append_blocks(troubled.poses, std::vector<double>{0, 0, 0}, e.to - 3); }, "after time");
      says([&] { s.append_blocks(troubled.poses, std::vector<double>{0, 0}, e.to); }, "2 values");
      says([&] { s.append_blocks(other.poses, std::vector<double>{0, 0, 0}, e.to); }, "of another problem");
      says([&] { s.append_blocks(troubled.poses, std::vector<double>{0, INFINITY, 0}, e.to); }, "is inf");
      says([&] { s.touch(troubled.poses, e.to, e.to - 1.0); }, "after time");
      says([&] { s.fix(troubled.poses, e.to - 1); }, "which an update moved");
      says([&] { s.erase(TermSet{3, 1}); }, "of another smoother");
      says(
          [&] {
            s.add_kind(
                TermType{
                    "e", {3}, 0, [](const TermArguments& a) { return std::vector{a.x(0, 0)}; }, {}, true},
                {troubled.poses});
          },
          "an energy");
      says(
          [&] {
            s.covariance(std::vector<std::pair<BlockSet, int64_t>>{{troubled.poses, e.to - 1},
                                                                   {troubled.poses, e.to - 1}});
          },
          "twice");
    }
    good.smoother.update(), s.update();
  }
  EXPECT_EQ(good.smoother.values(good.poses), troubled.smoother.values(troubled.poses));
  EXPECT_EQ(good.smoother.instance_count(), troubled.smoother.instance_count());
}

TEST(Window, UpdatesThatFailAreTakenUpLater) {
  Context context = cpu_context();
  SmootherOptions options;
  options.relinearize = 1e-6;  // the update that fails has linearised blocks again
  Drive good(context, options), late(context, options);
  const std::vector<Edge2> edges = streets(90, 8);
  const auto loop = std::ranges::find_if(edges, [](const Edge2& e) { return e.from != e.to - 1; });
  ASSERT_NE(loop, edges.end());
  const int32_t next = loop->to + 1;  // after a loop was closed, blocks have moved
  for (const Edge2& e : edges) {
    good.add(e);
    good.smoother.update();
    if (e.to != next || e.from != next - 1) {
      late.add(e), late.smoother.update();
      continue;
    }
    // The pose first, which nothing holds yet.
    const std::vector<double> before = late.smoother.values(late.poses);
    late.smoother.append_blocks(late.poses, compose2(late.smoother.value(late.poses, next - 1), e.z), next);
    const std::string text = refusal([&] { late.smoother.update(); });
    EXPECT_NE(text.find("of poses has a direction that no term determines"), std::string::npos) << text;
    const std::vector<double> after = late.smoother.values(late.poses);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
    late.smoother.add_terms(late.between, std::vector<int32_t>{next - 1, next}, row2(e.z));
    late.smoother.update();
  }
  EXPECT_EQ(good.smoother.values(good.poses), late.smoother.values(late.poses));

  // A term that is not finite in the middle of an update.
  HostTerm fails{"fails", {3}, 1, 0, [](const HostInstance& at, std::span<double> r) {
                   if (at.blocks[0][0] == 1e6) throw std::runtime_error("too far");
                   r[0] = 1e-3 * at.blocks[0][0];
                 }};
  const FactorKind kind = late.smoother.add_kind(fails, {late.poses});
  const std::vector<double> before = late.smoother.values(late.poses);
  const int64_t far = late.smoother.append_blocks(late.poses, std::vector<double>{1e6, 0, 0});
  const TermSet bad = late.smoother.add_terms(kind, std::vector<int32_t>{int32_t(far)}, {});
  late.smoother.add_terms(late.between, std::vector<int32_t>{89, int32_t(far)}, row2({1, 0, 0}));
  EXPECT_NE(refusal([&] { late.smoother.update(); }).find("too far"), std::string::npos);
  const std::vector<double> after = late.smoother.values(late.poses);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
  late.smoother.erase(bad);
  late.smoother.update();
}

TEST(Window, HasFlatMemory) {
  Context context = cpu_context();
  SmootherOptions options;
  options.lag = 10;
  Smoother smoother(context, options);
  const BlockSet poses = smoother.add_set("poses", se2());
  const FactorKind between = smoother.add_kind(se2_between_log(), {poses, poses});
  const FactorKind prior = smoother.add_kind(se2_pose_prior_log(), {poses});
  const std::vector<double> noise = random_numbers(9000, 3, -0.02, 0.02);
  struct Most {
    int64_t own = 0;
    size_t heap = 0;
  } early, late;
  for (int32_t k = 0; k < 3000; ++k) {
    std::vector<double> at{0, 0, 0};
    if (k > 0) at = compose2(smoother.value(poses, k - 1), {0.5, 0, 0.1});
    smoother.append_blocks(poses, at, k);
    if (k == 0) smoother.add_terms(prior, std::vector<int32_t>{0}, row2({0, 0, 0}));
    for (const int32_t step : {1, 2, 5}) {
      if (step > k) continue;
      const double* const off = noise.data() + 3 * k;
      std::vector<double> z{off[0], off[1], off[2]};
      for (int32_t i = 0; i < step; ++i) z = compose2({0.5, 0, 0.1}, z);
      smoother.add_terms(between, std::vector<int32_t>{k - step, k}, row2(z));
    }
    smoother.update();
    // Capacities of lists vary from frame to frame: the most of two stretches.
    if (k < 1000) continue;
    Most& most = k < 2000 ? early : late;
    most.own = std::max(most.own, smoother.bytes());
    most.heap = std::max(most.heap, mallinfo2().uordblks);
  }
  EXPECT_GT(early.own, 20'000);
  EXPECT_LE(double(late.own), 1.01 * double(early.own));
  EXPECT_LE(double(late.heap), 1.01 * double(early.heap));
  EXPECT_EQ(smoother.block_numbers(poses).front(), 2989);
  EXPECT_LT(smoother.instance_count(), 40);
}

}  // namespace
}  // namespace lockstep::solve::test
