// Inner iterations: never a higher cost than the step without them, the minimum over their groups, and fewer steps where one
// group is linear.
#include <gtest/gtest.h>
#include <unistd.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/refusal.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "solve/case_problems.hpp"
#include "solve/minimize/problems.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

using lockstep::test::refusal;

Context on_cpu() { return Context{ContextOptions{.device = "cpu"}}; }

/// y = a1 exp(-b1 t) + a2 exp(-b2 t) + a3 at 40 times, which is linear in a.
struct Exponentials {
  Problem problem;
  BlockSet a, b;
  std::vector<double> t, y;
};
Exponentials decay(std::vector<double> a = {0, 0, 0}, std::vector<double> b = {0.2, 3}) {
  Exponentials out;
  out.a = out.problem.add_blocks("amplitudes", euclidean(3), a);
  out.b = out.problem.add_blocks("rates", euclidean(2), b);
  std::vector<double> rows;
  for (int k = 0; k < 40; ++k) {
    const double t = 0.1 * k,
                 y = 5 * std::exp(-0.8 * t) - 3 * std::exp(-1.7 * t) + 0.5 + 0.01 * std::sin(37.0 * k);
    out.t.push_back(t), out.y.push_back(y);
    rows.insert(rows.end(), {t, y});
  }
  const TermType type{"decay", {3, 2}, 2, [](const TermArguments& v) {
                        return std::vector{v.x(0, 0) * exp(-v.x(1, 0) * v.data(0)) +
                                           v.x(0, 1) * exp(-v.x(1, 1) * v.data(0)) + v.x(0, 2) - v.data(1)};
                      }};
  out.problem.add_terms(type, {out.a, out.b}, std::vector<int32_t>(80, 0), rows);
  return out;
}

TEST(InnerIterations, OfALinearGroupAreVariableProjection) {
  Context context = on_cpu();
  Options options;
  options.max_iterations = 3, options.inner_groups = {"amplitudes"};
  Exponentials d = decay();
  const Summary found = minimize(d.problem, context, options);
  ASSERT_TRUE(std::ranges::any_of(found.trace, &Iteration::accepted));
  // The amplitudes are those of linear least squares at the rates.
  const auto rates = d.problem.value(d.b, 0), amplitudes = d.problem.value(d.a, 0);
  Eigen::MatrixXd m(40, 3);
  for (Eigen::Index k = 0; k < 40; ++k)
    m.row(k) << std::exp(-rates[0] * d.t[size_t(k)]), std::exp(-rates[1] * d.t[size_t(k)]), 1;
  const Eigen::Map<const Eigen::VectorXd> y(d.y.data(), 40);
  const Eigen::VectorXd expected = m.colPivHouseholderQr().solve(y);
  for (Eigen::Index k = 0; k < 3; ++k)
    EXPECT_NEAR(amplitudes[size_t(k)], expected[k], 1e-5 * expected.norm());
  EXPECT_NEAR(found.final_cost, 0.5 * (m * expected - y).squaredNorm(), 1e-9 * found.final_cost);
}

TEST(InnerIterations, NeedFewerStepsToTheSameMinimum) {
  Context context = on_cpu();
  for (const Method method : {Method::lm, Method::dogleg}) {
    Options options;
    options.method = method, options.max_iterations = 1000;
    Exponentials plain = decay(), inner = decay();
    const Summary without = minimize(plain.problem, context, options);
    options.inner_groups = {"amplitudes"};
    const Summary with = minimize(inner.problem, context, options);
    EXPECT_TRUE(converged(without.termination) && converged(with.termination)) << name(method);
    EXPECT_NEAR(with.final_cost, without.final_cost, 1e-6 * without.final_cost) << name(method);
    EXPECT_LT(4 * with.iterations, 3 * without.iterations) << name(method);
  }
}

TEST(InnerIterations, NeverEndHigherThanTheStepWithout) {
  Context context = on_cpu();
  for (const std::vector<std::string>& groups : {std::vector<std::string>{"auto"},
                                                 {"points"},
                                                 {"points", "cameras"},
                                                 {"cameras:0-2", "points:3+points:5"}})
    for (const Method method : {Method::lm, Method::gn, Method::dogleg, Method::newton})
      for (const uint64_t seed : {3, 4}) {
        Problem plain = bundle_problem(5, 30, 3, seed), inner = bundle_problem(5, 30, 3, seed);
        for (Problem* p : {&plain, &inner})
          for (const int64_t camera : {0, 1}) p->fix(BlockSet{0}, camera);
        Options options;
        options.method = method, options.max_iterations = 1;
        const double without = minimize(plain, context, options).final_cost;
        options.inner_groups = groups;
        const Summary with = minimize(inner, context, options);
        EXPECT_LE(with.final_cost, without) << name(method);
        EXPECT_NEAR(evaluate(inner, context).cost, with.final_cost, 1e-12 * with.final_cost);
        if (groups.back() == "points") EXPECT_LT(with.final_cost, without);
      }
}

/// The last group is at its minimum where a step was accepted.
TEST(InnerIterations, EndAtTheMinimumOverTheLastGroup) {
  Context context = on_cpu();
  Problem problem = bundle_problem(5, 30, 3, 8);
  problem.fix(BlockSet{0}, 0);
  const double before = [&] {
    const Evaluation at = evaluate(problem, context);
    return Eigen::Map<const Eigen::VectorXd>(at.gradient.data(), Eigen::Index(at.gradient.size()))
        .tail(90)
        .norm();
  }();
  Options options;
  options.max_iterations = 1, options.inner_groups = {"cameras", "points"};
  minimize(problem, context, options);
  const Evaluation at = evaluate(problem, context);
  EXPECT_LT(
      Eigen::Map<const Eigen::VectorXd>(at.gradient.data(), Eigen::Index(at.gradient.size())).tail(90).norm(),
      1e-3 * before);
}

TEST(InnerIterations, HaveTheSameBitsOnEveryDeviceAndAfterAResume) {
  const auto run = [](const char* device, const std::string& file, int stop_after) {
    Problem problem = bundle_problem(4, 20, 3, 2);
    problem.fix(BlockSet{0}, 0);
    problem.bound(BlockSet{1}, 3, 0, problem.value(BlockSet{1}, 3)[0] - 0.001,
                  problem.value(BlockSet{1}, 3)[0] + 0.001);
    Context context{ContextOptions{.device = device}};
    Options options;
    options.max_iterations = 5, options.inner_groups = {"auto"}, options.checkpoint = file;
    options.callback = [&](const Iteration& i) { return i.iteration != stop_after; };
    minimize(problem, context, options);
    return problem.state().values;
  };
  const std::vector<double> expected = run("cpu", "", 0);
  EXPECT_EQ(run("interp", "", 0), expected);
  const std::string file =
      (std::filesystem::temp_directory_path() / ("lockstep_inner_" + std::to_string(::getpid()))).string();
  run("cpu", file, 2);
  EXPECT_EQ(run("cpu", file, 0), expected);
  std::filesystem::remove(file);
}

/// Directions times lengths, two of them far off: of a robust loss, with bounds, fixed blocks and coordinates.
TEST(InnerIterations, KeepBoundsFixedBlocksAndManifolds) {
  struct Scaled {
    Problem problem;
    BlockSet directions, lengths;
  };
  const auto build = [] {
    Scaled out;
    std::vector<double> directions, data;
    std::vector<int32_t> pairs;
    for (int32_t k = 0; k < 8; ++k) {
      const double angle = 0.7 * k, z = 0.1 * k - 0.3, r = std::sqrt(1 - z * z), off = k == 6 ? 20 : 0.01 * k;
      directions.insert(directions.end(), {std::cos(angle + 0.4) * r, std::sin(angle + 0.4) * r, z});
      for (int32_t l = 0; l < 3; ++l) {
        pairs.insert(pairs.end(), {k, l});
        for (const double part : {std::cos(angle) * r, std::sin(angle) * r, z})
          data.push_back((l + 2) * part + off);
      }
    }
    out.directions = out.problem.add_blocks("directions", sphere2(), directions);
    out.lengths = out.problem.add_blocks("lengths", euclidean(1), std::vector<double>{0.6, 1, 9});
    const TermType type{"scaled",
                        {3, 1},
                        3,
                        [](const TermArguments& v) {
                          std::vector<Value> r;
                          for (int c = 0; c < 3; ++c) r.push_back(v.x(0, c) * v.x(1, 0) - v.data(c));
                          return r;
                        },
                        RobustLoss{RobustLoss::Kind::cauchy, 0.5}};
    out.problem.add_terms(type, {out.directions, out.lengths}, pairs, data);
    out.problem.bound(out.lengths, 0, 0, 0.5, 1.25);
    out.problem.fix(out.directions, 1);
    out.problem.fix_coordinates(out.directions, 2, std::vector<int>{1});
    return out;
  };
  Context context = on_cpu();
  for (const Precision precision : {Precision::f64, Precision::mixed, Precision::f32})
    for (const Method method : {Method::lm, Method::dogleg})
      for (const std::vector<std::string>& groups :
           {std::vector<std::string>{"auto"}, {"lengths"}, {"directions:0-4", "lengths:0+directions:7"}}) {
        Scaled plain = build(), inner = build();
        Options options;
        options.method = method, options.precision = precision, options.max_iterations = 200;
        const Summary without = minimize(plain.problem, context, options);
        options.inner_groups = groups;
        const Summary with = minimize(inner.problem, context, options);
        EXPECT_NE(with.termination, Termination::failure) << with.message;
        EXPECT_NEAR(with.final_cost, without.final_cost, 1e-3 * without.final_cost)  // a flat valley
            << name(method) << " " << name(precision) << " " << groups[0];
        const float top = 1.25f;
        EXPECT_EQ(inner.problem.value(inner.lengths, 0)[0], double(top));
        const Scaled start = build();
        for (int c = 0; c < 3; ++c)
          EXPECT_NEAR(inner.problem.value(inner.directions, 1)[size_t(c)],
                      start.problem.value(start.directions, 1)[size_t(c)],
                      precision == Precision::f32 ? 1e-7 : 0);
        for (int64_t k = 0; k < 8; ++k) {
          const auto d = inner.problem.value(inner.directions, k);
          EXPECT_NEAR(d[0] * d[0] + d[1] * d[1] + d[2] * d[2], 1, precision == Precision::f32 ? 1e-6 : 1e-12);
        }
      }
}

/// A Gauss-Newton step of the group leaves the domain of the logarithm.
TEST(InnerIterations, StayWhereTheResidualsAreNumbers) {
  Context context = on_cpu();
  for (const Method method : {Method::lm, Method::gn, Method::dogleg}) {
    Problem problem;
    const BlockSet x = problem.add_blocks("x", euclidean(1), std::vector<double>{1});
    const BlockSet y = problem.add_blocks("y", euclidean(1), std::vector<double>{0});
    const TermType type{"log", {1, 1}, 0, [](const TermArguments& v) {
                          return std::vector{log(v.x(0)) + v.x(1) + 5, 0.1 * (v.x(1) - 1)};
                        }};
    problem.add_terms(type, {x, y}, std::vector<int32_t>{0, 0}, {});
    Options options;
    options.method = method, options.inner_groups = {"x"}, options.max_iterations = 500;
    const Summary found = minimize(problem, context, options);
    EXPECT_TRUE(converged(found.termination)) << name(method) << found.message;
    EXPECT_NEAR(problem.values(x)[0], std::exp(-6), 1e-6);
    EXPECT_NEAR(problem.values(y)[0], 1, 1e-3);
  }
}

/// Three sets of which each has terms with each other: as many groups, and blocks that are fixed or alone are in none.
TEST(InnerIterations, FindGroupsThatShareNoTerm) {
  Problem problem;
  const auto numbers = [](int count) {
    std::vector<double> out;
    for (int k = 0; k < count; ++k) out.push_back(1 + 0.1 * k);
    return out;
  };
  const BlockSet x = problem.add_blocks("x", euclidean(1), numbers(9));
  const TermType product{
      "product", {1, 1}, 1, [](const TermArguments& a) { return std::vector{a.x(0) * a.x(1) - a.data(0)}; }};
  problem.add_terms(product, {x, x}, std::vector<int32_t>{0, 1, 1, 2, 2, 0, 3, 4, 4, 5, 6, 6, 7, 8},
                    std::vector<double>{2, 3, 4, 1, 2, 1, 3});
  problem.fix(x, 7);
  Context context = on_cpu();
  Options options;
  options.inner_groups = {"auto"};
  const Summary found = minimize(problem, context, options);
  EXPECT_TRUE(converged(found.termination));
  EXPECT_LT(found.final_cost, 1e-20);
}

TEST(InnerIterations, WithoutEffectOrWithoutBlocksAreRefused) {
  Context context = on_cpu();
  const auto with = [&](const std::vector<std::string>& groups, Method method = Method::lm,
                        int64_t parts = 1) {
    Exponentials d = decay();
    Options options;
    options.inner_groups = groups, options.method = method, options.parts = parts;
    if (parts > 1) options.linear = Linear::pcg;
    return refusal([&] { minimize(d.problem, context, options); });
  };
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << " without " << part;
  };
  contains(with({"amplitudes"}, Method::lbfgs), "it has no effect");
  contains(with({"amplitudes"}, Method::sgd), "it has no effect");
  contains(with({"amplitudes"}, Method::lm, 2), "not supported with");
  contains(with({"amplitudes+rates"}), "a group of all blocks that move");
  contains(with({"phases"}), "'phases'");
  contains(with({"auto", "rates"}), "'auto'");
  contains(refusal([&] {
             Options options;
             options.inner_groups = {"auto"};
             Problem problem = std::move(test::rosenbrock().problem);
             minimize(problem, context, options);
           }),
           "a group of all blocks that move");
}

}  // namespace
}  // namespace lockstep::solve
