// evaluate() and residuals_by_instance() against the reference; covariances against dense inverses.
#include "lockstep/solve/evaluation.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/error.hpp"
#include "lockstep/solve/covariance.hpp"
#include "problems.hpp"
#include "solve/reference.hpp"

namespace lockstep::solve::test {
namespace {

Eigen::MatrixXd dense(const SparseRows& m) {
  Eigen::MatrixXd out = Eigen::MatrixXd::Zero(m.rows, m.columns);
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t k = m.first[size_t(r)]; k < m.first[size_t(r) + 1]; ++k) {
      if (k > m.first[size_t(r)]) { EXPECT_LT(m.column[size_t(k) - 1], m.column[size_t(k)]); }
      out(r, m.column[size_t(k)]) = m.values[size_t(k)];
    }
  return out;
}
Eigen::VectorXd vector_of(const std::vector<double>& v) {
  return Eigen::Map<const Eigen::VectorXd>(v.data(), int64_t(v.size()));
}

/// Springs in two portions with another term between, so that batches are not in the order of adding.
struct Portions {
  Problem problem;
  BlockSet points, poses;
  TermSet first, between, second;
  Portions() {
    points = problem.add_blocks("points", euclidean(3), random_numbers(12 * 3, 1));
    std::vector<double> x = random_numbers(5 * 7, 2);
    normalize_rows(x, 7, 3, 4);
    poses = problem.add_blocks("poses", se3(), x);
    const auto edges = random_tuples(20, 2, 12, 3);
    first = problem.add_terms(spring_type(), {points, points}, edges, random_numbers(20, 4, 0.1, 1));
    std::vector<double> measured = random_numbers(8 * 7, 5);
    normalize_rows(measured, 7, 3, 4);
    between = problem.add_terms(pose_type({RobustLoss::Kind::cauchy, 0.7}), {poses, poses},
                                random_tuples(8, 2, 5, 6), measured);
    second = problem.add_terms(spring_type(), {points, points}, random_tuples(30, 2, 12, 7),
                               random_numbers(30, 8, 0.1, 1));
    problem.fix(points, 3);
    problem.fix(poses, 0);
  }
};

ContextOptions on(const char* device) {
  ContextOptions options;
  options.device = device;
  return options;
}

TEST(Evaluation, IsThatOfTheReferenceInTheOrderOfAdding) {
  Portions p;
  p.problem.enable(p.first, 4, false);
  const int held[] = {1, 5};
  p.problem.fix_coordinates(p.poses, 2, held);
  Context context(on("interp"));
  EvaluateOptions options;
  options.normal = true;
  const Evaluation e = evaluate(p.problem, context, options);
  const auto& x = p.problem.state().values;
  EXPECT_EQ(e.jacobian.rows, 19 + 8 * 6 + 30);
  EXPECT_EQ(e.jacobian.columns, p.problem.variable_count());
  EXPECT_EQ(p.problem.variable_count(), 11 * 3 + 4 * 6 - 2);
  EXPECT_NEAR(e.cost, reference::cost<double>(p.problem, x), 1e-13 * e.cost);
  EXPECT_NEAR(e.cost, p.problem.residual_count() > 0 ? e.cost : 0, 0);
  const Eigen::MatrixXd j = dense(e.jacobian);
  const Eigen::VectorXd r = vector_of(e.residuals);
  EXPECT_LT((j.transpose() * r - vector_of(e.gradient)).norm(), 1e-12 * r.norm());
  EXPECT_LT((j.transpose() * j - dense(e.normal)).norm(), 1e-12 * dense(e.normal).norm());
  // By complex steps: the reference's rows are those of batches, so columns of single springs are compared.
  const std::vector<double> gradient = reference::gradient(p.problem, x);
  size_t column = 0;
  for (size_t k = 0; k < gradient.size(); ++k) {
    int64_t block = k < 36 ? int64_t(k) / 3 : 12 + (int64_t(k) - 36) / 6;
    if (!p.problem.state().moves(block, int64_t(k))) continue;
    EXPECT_NEAR(e.gradient[column], gradient[k], 1e-11) << k;
    ++column;
  }
  EXPECT_EQ(first_column(p.problem, p.points, 3), -1);
  EXPECT_EQ(first_column(p.problem, p.points, 4), 9);
  EXPECT_EQ(first_column(p.problem, p.poses, 1), 33);
  // Rows: the spring after the disabled one is fifth, the last portion comes after the poses.
  const auto norms = residuals_by_instance(p.problem, context);
  ASSERT_EQ(norms.size(), 58u);
  EXPECT_FALSE(norms[4].enabled);
  EXPECT_NEAR(std::abs(e.residuals[4]), norms[5].norm, 1e-15);
  EXPECT_NEAR(std::abs(e.residuals[19 + 48 + 7]), norms[28 + 7].norm, 1e-15);
  double squares = 0;
  for (int k = 0; k < 6; ++k) squares += e.residuals[size_t(19 + k)] * e.residuals[size_t(19 + k)];
  EXPECT_NEAR(squares, norms[20].weight * norms[20].norm * norms[20].norm, 1e-13);
  EXPECT_NEAR(norms[20].weight, 1 / (1 + norms[20].norm * norms[20].norm / 0.49), 1e-13);
  EXPECT_EQ(norms[20].name, "pose");
}

TEST(Evaluation, WithoutLossesAndWeights) {
  Portions p;
  p.problem.weigh(p.second, 3.0);
  Context context(on("interp"));
  EvaluateOptions options;
  options.apply_loss = false;
  const Evaluation plain = evaluate(p.problem, context, options);
  EXPECT_NEAR(plain.cost, 0.5 * vector_of(plain.residuals).squaredNorm(), 1e-12);
  EXPECT_LT(
      (dense(plain.jacobian).transpose() * vector_of(plain.residuals) - vector_of(plain.gradient)).norm(),
      1e-12);
  const auto norms = residuals_by_instance(p.problem, context);
  EXPECT_NEAR(norms[40].norm, std::abs(plain.residuals[20 + 48 + 12]), 1e-15);
  EXPECT_EQ(norms[40].weight, 3);
}

TEST(Evaluation, OnADeviceHasTheSameNumbers) {
  const Portions p;
  Context context(on("interp"));
  const Evaluation host = evaluate(p.problem, context);
  const DeviceEvaluation there = evaluate_on(p.problem, context.device());
  const Device& device = context.device();
  EXPECT_EQ(there.cost, host.cost);
  EXPECT_EQ(device.download<double>(there.residuals), host.residuals);
  EXPECT_EQ(device.download<double>(there.gradient), host.gradient);
  EXPECT_EQ(device.download<double>(there.values), host.jacobian.values);
  EXPECT_EQ(device.download<int32_t>(there.column), host.jacobian.column);
}

TEST(Evaluation, OfEnergiesHasNoRowsForThem) {
  const Problem problem = mixed_problem(15, 3);
  Context context(on("interp"));
  EvaluateOptions options;
  options.normal = true;
  const Evaluation e = evaluate(problem, context, options);
  EXPECT_NEAR(e.cost, reference::cost<double>(problem, problem.state().values), 1e-12 * e.cost);
  EXPECT_EQ(int64_t(e.residuals.size()), problem.residual_count() - 15);
  EXPECT_EQ(e.normal.rows, int64_t(e.gradient.size()));
}

/// A chain of points with loops; each step measured several times makes J large enough for the sparse way.
Problem chain(int n, int times, BlockSet& set) {
  Problem problem;
  set = problem.add_blocks("chain", euclidean(2), random_numbers(size_t(n) * 2, 11));
  std::vector<int32_t> edges;
  for (int k = 0; k + 1 < n; ++k) edges.insert(edges.end(), {k, k + 1});
  for (int k = 0; k + 17 < n; k += 5) edges.insert(edges.end(), {k, k + 17});
  const std::vector<int32_t> once = edges;
  for (int k = 1; k < times; ++k) edges.insert(edges.end(), once.begin(), once.end());
  problem.add_terms({"step",
                     {2, 2},
                     2,
                     [](const TermArguments& a) {
                       return std::vector<Value>{a.x(1, 0) - a.x(0, 0) - a.data(0) + 0.1 * sin(a.x(1, 1)),
                                                 2.0 * (a.x(1, 1) - a.x(0, 1)) - a.data(1)};
                     }},
                    {set, set}, edges, random_numbers(edges.size(), 12));
  return problem;
}

TEST(CovarianceOf, ManyBlocksIsTheDenseInverseBothWays) {
  for (const auto& [n, times] : {std::pair(30, 1), {200, 25}}) {  // by QR; by sparse Cholesky
    BlockSet set;
    Problem problem = chain(n, times, set);
    problem.fix(set, 0);
    const int held[] = {1};
    problem.fix_coordinates(set, 5, held);
    Context context(on("interp"));
    EvaluateOptions options;
    options.normal = true;
    const Eigen::MatrixXd inverse = dense(evaluate(problem, context, options).normal).inverse();
    const Covariance covariance(problem, context);
    const std::vector<double> all = covariance.marginals(set);
    ASSERT_EQ(all.size(), size_t(n) * 4);
    const double scale = inverse.cwiseAbs().maxCoeff();
    for (int b = 1; b < n; ++b) {
      const int64_t at = first_column(problem, set, b);
      const int width = b == 5 ? 1 : 2;
      for (int i = 0; i < width; ++i)
        for (int j = 0; j < width; ++j)
          ASSERT_NEAR(all[size_t(b * 4 + i * 2 + j)], inverse(at + i, at + j), 1e-10 * scale) << b;
    }
    EXPECT_EQ(all[0], 0);
    EXPECT_EQ(all[5 * 4 + 3], 0);
    const std::vector<double> pair = covariance.block(set, 7, set, 20);
    const int64_t a = first_column(problem, set, 7), b = first_column(problem, set, 20);
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) EXPECT_NEAR(pair[size_t(i * 2 + j)], inverse(a + i, b + j), 1e-10 * scale);
  }
}

TEST(CovarianceOf, WhatMayMoveFreelyIsThatOfTheComplement) {
  BlockSet set;
  Problem problem = chain(12, 1, set);  // too short for loops: it may be moved along both axes
  Context context(on("interp"));
  EXPECT_THROW(Covariance(problem, context), InputError);
  EvaluateOptions wanted;
  wanted.normal = true;
  const Eigen::MatrixXd h = dense(evaluate(problem, context, wanted).normal);
  const Eigen::MatrixXd pseudo = h.completeOrthogonalDecomposition().pseudoInverse();
  for (const int64_t most_dense : {3000, 0}) {
    CovarianceOptions options;
    options.gauge = CovarianceOptions::Gauge::complement;
    options.dense_complement = most_dense;
    const Covariance covariance(problem, context, options);
    EXPECT_EQ(covariance.null_space(), 2);
    const std::vector<double> all = covariance.marginals(set), pair = covariance.block(set, 2, set, 9);
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) {
        for (int b = 0; b < 12; ++b)
          EXPECT_NEAR(all[size_t(b * 4 + i * 2 + j)], pseudo(2 * b + i, 2 * b + j), 1e-9 * pseudo.norm());
        EXPECT_NEAR(pair[size_t(i * 2 + j)], pseudo(4 + i, 18 + j), 1e-9 * pseudo.norm());
      }
  }
}

/// Pairs of a graph's edges.
std::vector<int32_t> edges_of(const std::string& shape, int n) {
  std::vector<int32_t> edges;
  const auto join = [&](int a, int b) { edges.insert(edges.end(), {a, b}); };
  for (int k = 1; k < n; ++k) {
    if (shape == "tree") join((k - 1) / 2, k);
    if (shape == "star") join(0, k), join(k, k % (n - 1) + 1);
    if (shape == "grid" && k % 6 != 0) join(k - 1, k);
    if (shape == "grid" && k >= 6) join(k - 6, k);
    if (shape == "parts" && k != n / 2) join(k - 1, k);
    if (shape == "dense")
      for (int other = 0; other < k; ++other) join(other, k);
  }
  return edges;
}

TEST(CovarianceOf, MarginalsAreTheDenseInversesOnManyGraphs) {
  Context context(on("cpu"));
  for (const std::string shape : {"tree", "star", "grid", "parts", "dense"})
    for (const char* loss : {"none", "cauchy:0.8", "soft_l1:0.5"}) {
      SCOPED_TRACE(shape + " " + loss);
      const int n = shape == "dense" ? 18 : 36;
      const std::vector<int32_t> once = edges_of(shape, n);
      std::vector<int32_t> edges;
      while (edges.size() < 16000) edges.insert(edges.end(), once.begin(), once.end());  // the sparse way
      std::vector<double> x = random_numbers(size_t(n) * 7, 31),
                          measured = random_numbers(edges.size() / 2 * 7, 32);
      normalize_rows(x, 7, 3, 4);
      normalize_rows(measured, 7, 3, 4);
      Problem problem;
      const BlockSet poses = problem.add_blocks("poses", se3(), x);
      problem.add_terms(pose_type(parse_robust_loss(loss)), {poses, poses}, edges, measured);
      problem.fix(poses, 0);
      problem.fix(poses, n / 2);
      const int held[] = {0, 4};
      problem.fix_coordinates(poses, 3, held);
      EvaluateOptions options;
      options.normal = true;
      const Eigen::MatrixXd inverse = dense(evaluate(problem, context, options).normal).inverse();
      const std::vector<double> all = Covariance(problem, context).marginals(poses);
      const double scale = inverse.cwiseAbs().maxCoeff();
      for (int b = 0; b < n; ++b) {
        const int64_t first = first_column(problem, poses, b);
        std::vector<int> moving;
        for (int c = 0; c < 6 && first >= 0; ++c)
          if (b != 3 || (c != 0 && c != 4)) moving.push_back(c);
        for (int i = 0; i < 6; ++i)
          for (int j = 0; j < 6; ++j) {
            const auto a = std::find(moving.begin(), moving.end(), i),
                       c = std::find(moving.begin(), moving.end(), j);
            const double expected = a == moving.end() || c == moving.end()
                                        ? 0
                                        : inverse(first + (a - moving.begin()), first + (c - moving.begin()));
            ASSERT_NEAR(all[size_t(b * 36 + i * 6 + j)], expected, 1e-9 * scale) << b << " " << i << " " << j;
          }
      }
    }
}

TEST(CheckDerivatives, FindsNothingInSoundTerms) {
  for (const DerivativeFault& fault : check_derivatives(Portions().problem)) ADD_FAILURE() << fault.text();
}

TEST(CheckDerivatives, NamesTheInstanceOfAFault) {
  Problem problem;
  const BlockSet points = problem.add_blocks("points", euclidean(3), random_numbers(4 * 3, 1));
  problem.add_terms(spring_type(), {points, points}, std::vector<int32_t>{0, 1, 2, 3, 1, 1},
                    std::vector<double>{1, 1, 1});  // from a point to itself: no direction
  const TermType stopped{"stopped", {3}, 1, [](const TermArguments& a) {
                           return std::vector{a.x(0, 0) - a.data(0),
                                              a.x(0, 1) + stop_gradient(square(a.x(0, 2)))};
                         }};
  problem.add_terms(stopped, {points}, std::vector<int32_t>{3}, std::vector<double>{0.5});
  const std::vector<DerivativeFault> faults = check_derivatives(problem);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].name, "spring");
  EXPECT_EQ(faults[0].instance, 2);
  EXPECT_EQ(faults[1].name, "stopped");
  EXPECT_EQ(faults[1].row, 1);
  EXPECT_EQ(faults[1].block, "points 3");
  EXPECT_EQ(faults[1].coordinate, 2);
  EXPECT_EQ(faults[1].derivative, 0);
  EXPECT_NE(faults[1].text().find("residual 1 to coordinate 2 of block points 3"), std::string::npos);
  DerivativeCheck none;
  none.points = 0;
  EXPECT_THROW(check_derivatives(problem, none), InputError);
}

}  // namespace
}  // namespace lockstep::solve::test
