// Orders of elimination that a user states: permutations with little fill, the same steps for every order, the same
// bits on every device, and refusals.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>

#include "core/refusal.hpp"
#include "solve/case_problems.hpp"
#include "solve/linear/cholesky/sparse_cholesky.hpp"
#include "solve/linear/fronts/front_cases.hpp"
#include "solve/linear/fronts/front_cholesky.hpp"
#include "solve/linear/host_solver.hpp"
#include "solve/minimize/choose.hpp"
#include "solve/minimize/problems.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

using lockstep::test::refusal;
using Orders = std::vector<std::string>;
using Pairs = std::vector<std::pair<int32_t, int32_t>>;

/// No block is eliminated before one that it depends on, of a lower group; the automatic order knows of no groups.
TEST(Order, EliminatesGroupsOneAfterTheOther) {
  const int32_t n = 12 * 13;
  const BlockMatrix matrix = random_matrix(std::vector<int>(size_t(n), 2), grid_pairs(12, 13), 3);
  std::vector<int32_t> thirds, single;
  for (int32_t v = 0; v < n; ++v) thirds.push_back((v * 7) % 3), single.push_back((v * 31) % n);
  const auto violations = [&](const FrontTree& tree, const std::vector<int32_t>& groups) {
    int found = 0;
    for (const Front& front : tree.fronts)
      for (int64_t pivot = front.first; pivot < front.last; ++pivot)
        for (const int32_t row : front.rows)
          found += groups[size_t(tree.old_of[size_t(pivot)])] > groups[size_t(tree.old_of[size_t(row)])];
    return found;
  };
  for (const std::vector<int32_t>& groups : {thirds, single}) {
    const FrontTree tree(matrix.pattern, groups);
    EXPECT_EQ(violations(tree, groups), 0);
    EXPECT_GT(violations(FrontTree(matrix.pattern), groups), 0);
    std::vector<int32_t> sorted = tree.old_of;
    std::ranges::sort(sorted);
    for (int32_t v = 0; v < n; ++v) EXPECT_EQ(sorted[size_t(v)], v);
  }
}

TEST(Order, DoesNotChangeWhatAFactorisationSolves) {
  for (const auto& [blocks, pairs] : {std::pair<int32_t, Pairs>{12 * 13, grid_pairs(12, 13)}, {9, {}}}) {
    std::vector<int> widths;
    std::vector<int32_t> thirds, reversed;
    for (int32_t k = 0; k < blocks; ++k) {
      widths.push_back(1 + (k * 5) % 4);
      thirds.push_back((k * 7) % 3), reversed.push_back(blocks - k);
    }
    const BlockMatrix matrix = random_matrix(widths, pairs, 11);
    const int64_t n = matrix.pattern.unknowns();
    Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(n, n);
    const double* from = matrix.values.data();
    for (size_t e = 0; e < matrix.pattern.rows.size(); ++e) {
      const int32_t a = matrix.pattern.rows[e], b = matrix.pattern.columns[e];
      for (int64_t j = 0; j < matrix.pattern.width(b); ++j)
        for (int64_t i = 0; i < matrix.pattern.width(a); ++i) {
          const int64_t row = matrix.pattern.first[size_t(a)] + i,
                        column = matrix.pattern.first[size_t(b)] + j;
          dense(row, column) = dense(column, row) = *from++;
        }
    }
    for (int64_t k = 0; k < n; ++k) dense(k, k) += matrix.added[size_t(k)];
    const Eigen::Map<const Eigen::VectorXd> right(matrix.right.data(), n);
    const Eigen::VectorXd expected = dense.ldlt().solve(right);
    for (const std::vector<int32_t>& groups : {thirds, reversed}) {
      SparseCholesky cholesky(matrix.pattern, groups);
      ASSERT_TRUE(cholesky.factorise(matrix.values, matrix.added));
      std::vector<double> x = matrix.right;
      cholesky.solve(x);
      EXPECT_LT((Eigen::Map<Eigen::VectorXd>(x.data(), n) - expected).norm(), 1e-11 * expected.norm());
      std::vector<std::vector<double>> found;
      for (const char* name : {"cpu", "interp"}) {
        const Device device = Device::open(name);
        FrontCholesky fronts(device, Storage::f64, matrix.pattern, groups);
        to_device(device, matrix.values, fronts.values()), to_device(device, matrix.added, fronts.added());
        to_device(device, matrix.right, fronts.x());
        fronts.run();
        found.push_back(to_host(device, fronts.x()));
      }
      EXPECT_EQ(found[0], found[1]);
      EXPECT_LT((Eigen::Map<Eigen::VectorXd>(found[0].data(), n) - expected).norm(), 1e-11 * expected.norm());
    }
  }
}

Problem bundle() {
  Problem problem = bundle_problem(6, 60, 3, 5);
  problem.fix(BlockSet{0}, 0);
  problem.fix(BlockSet{1}, 7);
  return problem;
}

struct SolvedInOrder {
  Summary summary;
  std::vector<double> points;
};
SolvedInOrder solve(Linear linear, const Orders& order, const char* device = "cpu",
                    Method method = Method::lm) {
  Problem problem = bundle();
  Context context{ContextOptions{.device = device}};
  Options options;
  options.method = method, options.linear = linear, options.order = order;
  options.max_iterations = 4, options.forcing = 1e-8;
  if (method == Method::gn) options.max_iterations = 2;
  SolvedInOrder out{minimize(problem, context, options), {}};
  const auto values = problem.values(BlockSet{1});
  out.points.assign(values.begin(), values.end());
  return out;
}

TEST(Order, OfEveryKindGivesTheSameStepsUpToRounding) {
  const SolvedInOrder expected = solve(Linear::dense_cholesky, {});
  ASSERT_EQ(expected.summary.trace.size(), 4u);
  const Orders points_first{"points"}, both{"points", "cameras"}, cameras_first{"cameras", "points"},
      mixed{"points:0-9+cameras:2", "cameras:0-1", "points:20-59"};
  for (const auto& [linear, orders] : std::vector<std::pair<Linear, std::vector<Orders>>>{
           {Linear::cholesky, {points_first, both, cameras_first, mixed, {"points+cameras"}}},
           {Linear::device_cholesky, {points_first, cameras_first, mixed}},
           {Linear::dense_schur, {points_first, both, cameras_first, {"points:0-30"}, {"cameras:1"}}},
           {Linear::schur_pcg, {points_first, both, cameras_first}}})
    for (const Orders& order : orders) {
      const SolvedInOrder found = solve(linear, order);
      ASSERT_EQ(found.summary.trace.size(), 4u) << name(linear) << order[0];
      for (size_t k = 0; k < 4; ++k)
        EXPECT_NEAR(found.summary.trace[k].cost, expected.summary.trace[k].cost,
                    1e-7 * expected.summary.trace[k].cost)
            << name(linear) << " " << order[0] << " " << k;
      const SolvedInOrder again = solve(linear, order, "interp");
      EXPECT_EQ(again.points, found.points) << name(linear) << order[0];
      EXPECT_EQ(again.summary.final_cost, found.summary.final_cost);
    }
}

/// Neither a kept solver nor a kept pattern outlives a change of the order or of the blocks that move.
TEST(Order, ChangesBetweenMinimisationsOfAProblem) {
  Context context{ContextOptions{.device = "cpu"}};
  Problem problem = bundle();
  const std::vector<double> start = problem.state().values;
  Options options;
  options.max_iterations = 3;
  for (const Linear linear : {Linear::cholesky, Linear::device_cholesky, Linear::dense_schur})
    for (const Orders& order : {Orders{"points"}, Orders{"points:0-30"}, Orders{"cameras"}, Orders{}})
      for (const int64_t fixed : {0, 5}) {
        options.linear = linear, options.order = order;
        Problem fresh = bundle();
        for (Problem* p : {&problem, &fresh}) {
          p->state().values = start;
          for (const int64_t camera : {0, 5}) p->fix(BlockSet{0}, camera, camera == fixed);
          for (const int64_t point : {2, 50}) p->fix(BlockSet{1}, point, (point == 2) == (fixed == 0));
          minimize(*p, context, options);
        }
        EXPECT_EQ(problem.state().values, fresh.state().values) << name(linear) << fixed;
      }
}

/// Groups name blocks by their numbers, which stay when others are erased, and blocks that are added are in the last group.
TEST(Order, NamesBlocksOfAProblemThatChanged) {
  const auto build = [] {
    Problem problem;
    const std::vector<double> start{0.9, 1.8, 2.7, 3.6, 4.5, 5.4};
    const BlockSet x = problem.add_blocks("x", euclidean(1), start);
    const TermType pull{
        "pull", {1}, 1, [](const TermArguments& a) { return std::vector{a.x(0) * a.x(0) - a.data(0)}; }};
    const TermType pair{
        "pair", {1, 1}, 0, [](const TermArguments& a) { return std::vector{a.x(0) - a.x(1) + 1}; }};
    problem.add_terms(pull, {x}, std::vector<int32_t>{0, 1, 3, 4, 5}, std::vector<double>{1, 4, 16, 25, 36});
    problem.add_terms(pair, {x, x}, std::vector<int32_t>{0, 1, 1, 3, 3, 4, 4, 5}, {});
    problem.erase(x, std::vector<int64_t>{2});
    const int64_t added = problem.append_blocks(x, std::vector<double>{6.3});
    problem.add_terms(pair, {x, x}, std::vector<int32_t>{5, int32_t(added)}, {});
    problem.fix(x, 4);
    return problem;
  };
  Context context{ContextOptions{.device = "cpu"}};
  Options options;
  options.max_iterations = 3, options.linear = Linear::dense_cholesky;
  Problem plain = build();
  const double expected = minimize(plain, context, options).final_cost;
  for (const auto& [linear, order] :
       std::vector<std::pair<Linear, Orders>>{{Linear::cholesky, {"x:3-4", "x:0"}},
                                              {Linear::dense_schur, {"x:3-4+x:0+x:6"}},
                                              {Linear::dense_schur, {"x:4"}}}) {
    Problem problem = build();
    options.linear = linear, options.order = order;
    EXPECT_NEAR(minimize(problem, context, options).final_cost, expected, 1e-9 * expected) << name(linear);
  }
  for (const char* group : {"x:2", "x:1-3"}) {
    Problem problem = build();
    options.order = {group};
    EXPECT_NE(refusal([&] { minimize(problem, context, options); }).find("block 2 of x, which was erased"),
              std::string::npos);
  }
}

/// A first group that does not move, and one that is everything.
TEST(Order, LeavesNothingOrAllToTheComplement) {
  Context context{ContextOptions{.device = "cpu"}};
  const auto build = [](bool fixed) {
    Problem problem;
    const BlockSet x = problem.add_blocks("x", euclidean(2), std::vector<double>{1, 2, 3, 4});
    const BlockSet y = problem.add_blocks("y", euclidean(2), std::vector<double>{2, 1, 1, 1});
    const TermType square{"square", {2}, 1, [](const TermArguments& a) {
                            return std::vector{a.x(0, 0) * a.x(0, 1) - a.data(0), a.x(0, 0) - 2.0};
                          }};
    const TermType cube{"cube", {2}, 1, [](const TermArguments& a) {
                          return std::vector{a.x(0, 0) * a.x(0, 1) * a.x(0, 1) - a.data(0), a.x(0, 0) - 2.0};
                        }};
    const TermType pair{
        "pair", {2, 2}, 0, [](const TermArguments& a) { return std::vector{a.x(0, 0) * a.x(1, 1) - 1.0}; }};
    problem.add_terms(square, {x}, std::vector<int32_t>{0, 1}, std::vector<double>{3, 5});
    problem.add_terms(cube, {y}, std::vector<int32_t>{0, 1}, std::vector<double>{2, 7});
    if (fixed) problem.add_terms(pair, {x, y}, std::vector<int32_t>{0, 0, 1, 1, 0, 1}, {});
    for (int64_t k = 0; k < 2 && fixed; ++k) problem.fix(x, k);
    return problem;
  };
  for (const bool fixed : {false, true}) {
    Options options;
    options.max_iterations = 3, options.linear = Linear::dense_cholesky;
    Problem plain = build(fixed);
    const double expected = minimize(plain, context, options).final_cost;
    for (const Linear linear :
         {Linear::automatic, Linear::cholesky, Linear::dense_schur, Linear::schur_pcg}) {
      Problem problem = build(fixed);
      options.linear = linear, options.order = {"x"}, options.forcing = 1e-10;
      EXPECT_NEAR(minimize(problem, context, options).final_cost, expected, 1e-7 * expected) << name(linear);
      if (fixed || linear == Linear::schur_pcg) continue;
      Problem all = build(fixed);
      options.order = {"x+y"};
      EXPECT_NEAR(minimize(all, context, options).final_cost, expected, 1e-7 * expected) << name(linear);
    }
  }
}

TEST(Order, ChoosesASolverThatReadsIt) {
  DeviceInfo cpu;
  cpu.kind = DeviceKind::cpu;
  const Problem problem = bundle();
  Options options;
  options.order = {"points"};
  EXPECT_EQ(choose_linear(problem, options, cpu), Linear::dense_schur);
  options.order = {"cameras", "points"};  // a dense matrix of the points
  EXPECT_EQ(choose_linear(problem, options, cpu), Linear::dense_schur);
  options.order = {"points:0-3"};
  EXPECT_EQ(choose_linear(problem, options, cpu), Linear::cholesky);
  options.order = {"points", "cameras:1"};
  EXPECT_EQ(choose_linear(problem, options, cpu), Linear::dense_schur);
}

TEST(Order, ThatHasNoEffectOrNoBlocksIsRefused) {
  Context context{ContextOptions{.device = "cpu"}};
  const auto with = [&](const Orders& order, Linear linear = Linear::cholesky, Method method = Method::lm,
                        int64_t parts = 1) {
    Problem problem = bundle();
    const std::vector<double> before = problem.state().values;
    Options options;
    options.order = order, options.linear = linear, options.method = method, options.parts = parts;
    const std::string text = refusal([&] { minimize(problem, context, options); });
    EXPECT_EQ(problem.state().values, before);
    return text;
  };
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << " without " << part;
  };
  for (const Linear linear : {Linear::pcg, Linear::dense_cholesky, Linear::dense_qr})
    contains(with({"points"}, linear), "it has no effect");
  for (const Method method : {Method::lbfgs, Method::adam})
    contains(with({"points"}, Linear::automatic, method), "it has no effect");
  contains(with({"points"}, Linear::pcg, Method::lm, 2), "not supported with");
  contains(with({"lines"}), "'lines'");
  contains(with({"lines"}), "of cameras, points");
  contains(with({""}), "''");
  contains(with({"points:60"}), "0 to 59");
  contains(with({"points:5-4"}), "'points:5-4'");
  contains(with({"points:-1"}), "'points:-1'");
  contains(with({"points:1-99999999999999999999"}), "'points:1-9");
  contains(with({"points", "cameras+points:4"}), "block 4 of points twice");
  contains(with({"points+"}), "''");
  contains(with({"points+cameras"}, Linear::dense_schur), "which share a term of");
  contains(with({"points", "cameras:1", "cameras:2"}, Linear::dense_schur), "3 groups");
  contains(with({"points:0-9"}, Linear::schur_pcg), "not one block set");
  Problem twice;
  for (int k = 0; k < 2; ++k) twice.add_blocks("x", euclidean(1), std::vector<double>{1});
  const TermType pull{"pull", {1, 1}, 0, [](const TermArguments& a) { return std::vector{a.x(0), a.x(1)}; }};
  twice.add_terms(pull, {BlockSet{0}, BlockSet{1}}, std::vector<int32_t>{0, 0}, {});
  Options options;
  options.order = {"x"};
  contains(refusal([&] { minimize(twice, context, options); }), "two block sets 'x'");
}

}  // namespace
}  // namespace lockstep::solve
