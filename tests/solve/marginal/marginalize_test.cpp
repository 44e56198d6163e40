// Marginalisation compared with dense algebra; minima of the remaining problem compared with those of the whole one.
#include "lockstep/solve/marginalize.hpp"

#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <Eigen/Dense>
#include <cmath>

#include "../evaluate/problems.hpp"
#include "core/refusal.hpp"
#include "lockstep/solve/covariance.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "lockstep/solve/factors.hpp"

namespace lockstep::solve::test {
namespace {

using lockstep::test::refusal;

using Eigen::MatrixXd;
using Eigen::VectorXd;

Context context_of(const char* device) {
  ContextOptions options;
  options.device = device;
  return Context(options);
}

/// r = A (x, y) - b with A and b data: linear, so that a prior says all that its terms said.
TermType linear_type(int a, int b) {
  return {"linear", {a, b}, 2 * (a + b) + 2, [=](const TermArguments& t) {
            std::vector<Value> out;
            for (int r = 0; r < 2; ++r) {
              Value sum = -t.data(2 * (a + b) + r);
              for (int k = 0; k < a; ++k) sum = sum + t.data(r * (a + b) + k) * t.x(0, k);
              for (int k = 0; k < b; ++k) sum = sum + t.data(r * (a + b) + a + k) * t.x(1, k);
              out.push_back(sum);
            }
            return out;
          }};
}

struct Chain {
  Problem problem;
  BlockSet points;
  explicit Chain(uint64_t seed, int terms = 14) {
    points = problem.add_blocks("points", euclidean(3), random_numbers(6 * 3, seed));
    problem.add_terms(linear_type(3, 3), {points, points}, random_tuples(terms, 2, 6, seed),
                      random_numbers(size_t(terms) * 14, seed + 1));
  }
};

MatrixXd dense(const SparseRows& sparse) {
  MatrixXd out = MatrixXd::Zero(sparse.rows, sparse.columns);
  for (int64_t r = 0; r < sparse.rows; ++r)
    for (int64_t e = sparse.first[size_t(r)]; e < sparse.first[size_t(r) + 1]; ++e)
      out(r, sparse.column[size_t(e)]) = sparse.values[size_t(e)];
  return out;
}

/// J^T J and J^T r at the problem's values.
std::pair<MatrixXd, VectorXd> normal_of(const Problem& problem) {
  Context context = context_of("cpu");
  const Evaluation e = evaluate(problem, context);
  const MatrixXd j = dense(e.jacobian);
  return {j.transpose() * j,
          j.transpose() * Eigen::Map<const VectorXd>(e.residuals.data(), Eigen::Index(e.residuals.size()))};
}

/// The Schur complement of the first `n` unknowns.
std::pair<MatrixXd, VectorXd> schur(const MatrixXd& h, const VectorXd& g, Eigen::Index n) {
  const Eigen::Index m = h.rows() - n;
  const MatrixXd inverse = h.topLeftCorner(n, n).completeOrthogonalDecomposition().pseudoInverse();
  return {h.bottomRightCorner(m, m) - h.bottomLeftCorner(m, n) * inverse * h.topRightCorner(n, m),
          g.tail(m) - h.bottomLeftCorner(m, n) * inverse * g.head(n)};
}

TEST(Marginalize, IsTheSchurComplement) {
  for (uint64_t seed = 1; seed < 12; ++seed) {
    Chain c(seed);
    const auto [h, g] = normal_of(c.problem);
    const auto [expected, slope] = schur(h, g, 6);
    Context context = context_of("cpu");
    const double before = evaluate(c.problem, context).cost;
    const LinearPrior prior = marginalize(c.problem, context, c.points, std::vector<int64_t>{0, 1});
    const Eigen::SelfAdjointEigenSolver<MatrixXd> eigen(
        h.topLeftCorner(6, 6));  // blocks with few terms are not held
    EXPECT_EQ(prior.undetermined, (eigen.eigenvalues().array() < 1e-12 * h.norm()).count()) << seed;
    EXPECT_EQ(c.problem.block_count(c.points), 4);
    const auto [got, got_slope] = normal_of(c.problem);
    EXPECT_LT((got - expected).norm(), 1e-12 * expected.norm()) << seed;
    EXPECT_LT((got_slope - slope).norm(), 1e-11 * std::max(1.0, slope.norm())) << seed;
    // The cost that is left is that of the whole, with the blocks that left at their best.
    const MatrixXd inverse = h.topLeftCorner(6, 6).completeOrthogonalDecomposition().pseudoInverse();
    const double best = before - 0.5 * g.head(6).dot(inverse * g.head(6));
    EXPECT_NEAR(evaluate(c.problem, context).cost + prior.constant, best, 1e-12 * best) << seed;
  }
}

TEST(Marginalize, OfLinearTermsLeavesTheMinimum) {
  Chain whole(3), part(3);
  Context context = context_of("cpu");
  Options options;
  options.method = Method::gn;
  minimize(whole.problem, context, options);
  marginalize(part.problem, context, part.points, std::vector<int64_t>{4});
  marginalize(part.problem, context, part.points, std::vector<int64_t>{0, 2});  // over the prior of the first
  minimize(part.problem, context, options);
  for (const int64_t k : {1, 3, 5})
    for (size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(part.problem.value(part.points, k)[i], whole.problem.value(whole.points, k)[i], 1e-10);
}

/// A graph of poses with measurements that agree but for a little.
struct Poses {
  Problem problem;
  BlockSet poses;
  TermSet odometry;
  explicit Poses(int count = 7, bool anchored = true) {
    std::vector<double> values, measured;
    std::vector<int32_t> edges;
    for (int k = 0; k < count; ++k) {
      const double turn = 0.35 * k;
      for (const double v :
           {2.0 * k, std::sin(turn), 0.1 * k, std::cos(turn / 2), 0.0, 0.0, std::sin(turn / 2)})
        values.push_back(v);
    }
    poses = problem.add_blocks("poses", se3(), values);
    const std::vector<double> noise = random_numbers(size_t(count) * 14, 5, -0.05, 0.05);
    size_t at = 0;
    for (int k = 0; k < count; ++k)
      for (const int to : {k + 1, k + 3}) {
        if (to >= count) continue;
        edges.push_back(k), edges.push_back(to);
        const double turn = 0.35 * (to - k);
        for (const double v :
             {2.0 * (to - k), 0.2, 0.1 * (to - k), std::cos(turn / 2), 0.01, 0.0, std::sin(turn / 2)})
          measured.push_back(v + noise[at++ % noise.size()]);
      }
    normalize_rows(measured, 7, 3, 4);
    odometry = problem.add_terms(pose_type(), {poses, poses}, edges, measured);
    if (anchored)
      problem.add_terms(TermType{"anchor",
                                 {7},
                                 0,
                                 [](const TermArguments& a) {
                                   const auto q = log_map(a.quaternion(0, 3));
                                   return std::vector<Value>{a.x(0, 0), a.x(0, 1), a.x(0, 2),
                                                             q[0],      q[1],      q[2]};
                                 }},
                        {poses}, std::vector<int32_t>{0}, {});
  }
};

TEST(Marginalize, OfPosesAtTheMinimumKeepsMinimumAndCovariance) {
  Poses whole, part;
  Context context = context_of("cpu");
  Options tight;
  tight.function_tolerance = 1e-15;
  minimize(whole.problem, context, tight), minimize(part.problem, context, tight);
  const Covariance before(whole.problem, context);
  marginalize(part.problem, context, part.poses, std::vector<int64_t>{0, 1, 2});
  const Covariance after(part.problem, context);
  for (int64_t k = 3; k < 7; ++k) {
    expect_near(after.block(part.poses, k), before.block(whole.poses, k), 1e-9, "covariance");
    expect_near(after.block(part.poses, k, part.poses, 6), before.block(whole.poses, k, whole.poses, 6), 1e-9,
                "covariance");
  }
  Context again = context_of("cpu");
  EXPECT_LT(minimize(part.problem, again, tight).iterations, 6);
  for (int64_t k = 3; k < 7; ++k)
    for (size_t i = 0; i < 7; ++i)
      EXPECT_NEAR(part.problem.value(part.poses, k)[i], whole.problem.value(whole.poses, k)[i], 1e-6);
}

/// Without an anchor six directions stay free: the prior says so and invents nothing.
TEST(Marginalize, LeavesAGaugeFree) {
  Poses p(6, false);
  Context context = context_of("cpu");
  minimize(p.problem, context);
  const LinearPrior prior = marginalize(p.problem, context, p.poses, std::vector<int64_t>{0});
  EXPECT_EQ(prior.blocks.size(), 2u);
  EXPECT_EQ(prior.columns, 12);
  EXPECT_EQ(prior.free_directions(), 6);
  // A block that one term holds alone says nothing of others.
  Problem q;
  const BlockSet x = q.add_blocks("x", euclidean(2), random_numbers(4, 1));
  q.add_terms(linear_type(2, 2), {x, x}, std::vector<int32_t>{0, 1}, random_numbers(10, 2));
  const LinearPrior none = marginalize(q, context, x, std::vector<int64_t>{0});
  EXPECT_EQ(none.rows, 0);
  EXPECT_EQ(none.undetermined, 0);
  EXPECT_EQ(q.residual_count(), 0);
}

/// A gauge, and directions of a block that leaves which nothing holds: the dense complement by pseudo-inverse.
TEST(Marginalize, IsTheComplementWhereBlocksAreNotHeld) {
  Poses p(6, false);
  const BlockSet marks = p.problem.add_blocks("marks", euclidean(3), std::vector<double>{3, 4, 1});
  p.problem.add_terms(range_to(3), {p.poses, marks}, std::vector<int32_t>{4, 0, 5, 0},
                      std::vector<double>{3, 0.1, 4, 0.1});
  const auto [h, g] = normal_of(p.problem);  // the mark's columns are the last
  std::vector<Eigen::Index> order{36, 37, 38};
  for (Eigen::Index k = 0; k < 36; ++k) order.push_back(k);
  const auto [expected, slope] = schur(h(order, order), g(order), 3);
  Context context = context_of("cpu");
  const LinearPrior prior = marginalize(p.problem, context, marks, std::vector<int64_t>{0});
  EXPECT_EQ(prior.undetermined, 1);  // two ranges: it may turn about the line between the poses
  EXPECT_EQ(prior.rows, 0);
  EXPECT_EQ(p.problem.block_count(marks), 0);
  const auto [got, got_slope] = normal_of(p.problem);
  EXPECT_LT((got - expected).norm(), 1e-11 * expected.norm());
  EXPECT_LT((got_slope - slope).norm(), 1e-11 * std::max(1.0, slope.norm()));
}

/// A threshold in units of the unknowns would call small ones undetermined.
TEST(Marginalize, DoesNotDependOnUnits) {
  for (const double unit : {1e-9, 1.0, 1e9}) {
    Problem p;
    const BlockSet x = p.add_blocks("x", euclidean(1), std::vector<double>{1 * unit, 2, 3});
    p.add_terms(TermType{"move",
                         {1, 1},
                         2,
                         [](const TermArguments& a) {
                           return std::vector<Value>{a.x(1) - a.data(0) * a.x(0) - a.data(1),
                                                     a.data(0) * a.x(0)};
                         }},
                {x, x}, std::vector<int32_t>{0, 1, 0, 2}, std::vector<double>{1 / unit, 0.5, 2 / unit, 1});
    Context context = context_of("cpu");
    const LinearPrior prior = marginalize(p, context, x, std::vector<int64_t>{0});
    EXPECT_EQ(prior.undetermined, 0) << unit;
    EXPECT_EQ(prior.rows, 2) << unit;
    const auto [h, g] = normal_of(p);
    // [1 0; 0 1] less the products with the column (-1, -2) of square 10.
    EXPECT_NEAR(h(0, 0), 0.9, 1e-14) << unit;
    EXPECT_NEAR(h(0, 1), -0.2, 1e-14) << unit;
    EXPECT_NEAR(h(1, 1), 0.6, 1e-14) << unit;
  }
}

TEST(Marginalize, GivesTheSameBitsForEveryNumberOfThreads) {
  std::vector<LinearPrior> priors;
  for (const size_t threads : {1, 2, 5}) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    Poses p(40);
    ContextOptions options;
    options.device = "cpu", options.threads = int(threads);
    Context context(options);
    marginalize(p.problem, context, p.poses, std::vector<int64_t>{0, 3});
    minimize(p.problem, context);
    priors.push_back(marginalize(p.problem, context, p.poses, std::vector<int64_t>{1, 2}));
  }
  for (const LinearPrior& prior : priors) {
    EXPECT_EQ(prior.root, priors[0].root);
    EXPECT_EQ(prior.offset, priors[0].offset);
    EXPECT_EQ(prior.from, priors[0].from);
    EXPECT_EQ(prior.constant, priors[0].constant);
  }
}

TEST(Marginalize, GivesTheSameBitsOnAllDevices) {
  std::vector<LinearPrior> priors;
  std::vector<std::string> devices{"cpu", "interp"};
  for (const DeviceStatus& status : Device::list())
    if (status.available && status.info.kind == DeviceKind::cuda) devices.emplace_back("cuda");
  for (const std::string& device : devices) {
    Poses p;
    Context context = context_of(device.c_str());
    priors.push_back(marginalize(p.problem, context, p.poses, std::vector<int64_t>{0, 3}));
  }
  for (const LinearPrior& prior : priors) {
    EXPECT_EQ(prior.root, priors[0].root);
    EXPECT_EQ(prior.offset, priors[0].offset);
    EXPECT_EQ(prior.from, priors[0].from);
  }
}

TEST(Marginalize, LinearisesAtFirstEstimates) {
  Poses a, b;
  Context context = context_of("cpu");
  MarginalizeOptions options;
  std::vector<double> first(b.problem.value(b.poses, 3).begin(), b.problem.value(b.poses, 3).end());
  first[0] += 0.2;
  options.first_estimates = {{a.poses, 3, first}};
  const LinearPrior given = marginalize(a.problem, context, a.poses, std::vector<int64_t>{0}, options);
  std::ranges::copy(first, b.problem.value(b.poses, 3).begin());
  const LinearPrior there = marginalize(b.problem, context, b.poses, std::vector<int64_t>{0});
  EXPECT_EQ(given.root, there.root);
  EXPECT_EQ(given.from, there.from);
  EXPECT_NE(a.problem.value(a.poses, 3)[0], first[0]);  // the problem's own values stay
}

TEST(Marginalize, RefusesAndLeavesTheProblem) {
  Poses p;
  Problem other;
  const BlockSet elsewhere = other.add_blocks("x", euclidean(1), std::vector<double>{1});
  Context context = context_of("cpu");
  p.problem.fix(p.poses, 5);
  p.problem.fix_coordinates(p.poses, 6, std::vector<int>{2});
  const BlockSet level = p.problem.add_blocks("level", euclidean(1), std::vector<double>{1});
  p.problem.add_terms(linear_type(1, 1), {level, level}, std::vector<int32_t>{0, 0},
                      std::vector<double>{1, 1, 1, 1, 1, 1});
  p.problem.bound(level, 0, 0, -INFINITY, 5);
  const double before = evaluate(p.problem, context).cost;
  const auto of = [&](std::vector<int64_t> blocks) {
    return refusal([&] { marginalize(p.problem, context, p.poses, blocks); });
  };
  EXPECT_NE(of({5}).find("block 5 of poses, which is fixed"), std::string::npos);
  EXPECT_NE(of({9}).find("block 9 of poses"), std::string::npos);
  EXPECT_NE(of({1, 1}).find("block 1 of poses twice"), std::string::npos);
  EXPECT_NE(of({3}).find("block 6 of poses with coordinates that are held"), std::string::npos);
  EXPECT_NE(of({}).find("no blocks"), std::string::npos);
  EXPECT_NE(refusal([&] {
              marginalize(p.problem, context, level, std::vector<int64_t>{0});
            }).find("block 0 of level, which has bounds"),
            std::string::npos);
  MarginalizeOptions estimates;
  estimates.first_estimates = {{p.poses, 3, {1, 2}}};
  EXPECT_NE(refusal([&] {
              marginalize(p.problem, context, p.poses, std::vector<int64_t>{1}, estimates);
            }).find("2 numbers of a first estimate"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              marginalize(p.problem, context, elsewhere, std::vector<int64_t>{0});
            }).find("another problem"),
            std::string::npos);
  EXPECT_EQ(evaluate(p.problem, context).cost, before);
  EXPECT_EQ(p.problem.block_count(p.poses), 7);
  marginalize(p.problem, context, p.poses, std::vector<int64_t>{0});
  EXPECT_NE(of({0}).find("was erased"), std::string::npos);
  LinearPrior prior;
  prior.blocks = {{elsewhere, 0}};
  EXPECT_NE(refusal([&] { add_prior(p.problem, prior); }).find("another problem"), std::string::npos);
  prior.rows = prior.columns = 1, prior.root = {NAN}, prior.offset = {0}, prior.from = {1};
  EXPECT_NE(refusal([&] { add_prior(other, prior); }).find("the number nan"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::solve::test
