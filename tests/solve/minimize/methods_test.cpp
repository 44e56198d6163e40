// Every method against closed forms, in ordinary and in degenerate cases.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/solve.hpp"
#include "solve/minimize/problems.hpp"

namespace lockstep::solve {
namespace {

using test::Instance;

Context& cpu() {
  static Context context(ContextOptions{.device = "cpu"});
  return context;
}
Options precise(Method method, Linear linear = Linear::automatic) {
  Options options;
  options.method = method;
  options.linear = linear;
  options.function_tolerance = 0;
  options.gradient_tolerance = 1e-10;
  options.max_iterations = 2000;
  return options;
}
const std::vector<Method> kSecondOrder{Method::lm, Method::gn, Method::dogleg, Method::newton};
const std::vector<Linear> kLinear{Linear::dense_cholesky, Linear::dense_qr, Linear::cholesky, Linear::pcg};

TEST(Minimize, RosenbrockByEveryMethodAndSolver) {
  for (const Method method : {Method::lm, Method::gn, Method::dogleg, Method::newton, Method::lbfgs})
    for (const Linear linear : kLinear) {
      SCOPED_TRACE(testing::Message() << name(method) << " " << name(linear));
      Instance r = test::rosenbrock();
      const Summary summary = minimize(r.problem, cpu(), precise(method, linear));
      EXPECT_TRUE(converged(summary.termination)) << name(summary.termination) << " " << summary.message;
      EXPECT_NEAR(summary.initial_cost, 0.5 * (4.4 * 4.4 + 2.2 * 2.2), 1e-12);
      EXPECT_LT(summary.final_cost, 1e-18);
      EXPECT_NEAR(r.problem.values(r.set)[0], 1, 1e-9);
      EXPECT_NEAR(r.problem.values(r.set)[1], 1, 1e-9);
      EXPECT_EQ(int(summary.trace.size()), summary.iterations);
      EXPECT_LT(summary.iterations, 100);
    }
}

TEST(Minimize, FirstOrderMethodsGoDown) {
  for (const Method method : {Method::sgd, Method::adam, Method::adamw}) {
    SCOPED_TRACE(name(method));
    Instance r = test::rosenbrock();
    Options options = precise(method);
    options.learning_rate = method == Method::sgd ? 1e-3 : 2e-2;
    options.momentum = 0.9;
    options.max_iterations = 5000;
    options.parameter_tolerance = 0;
    const Summary summary = minimize(r.problem, cpu(), options);
    EXPECT_LT(summary.final_cost, 1e-4 * summary.initial_cost);
    EXPECT_NEAR(r.problem.values(r.set)[0], 1, 0.05);
  }
}

TEST(Minimize, TheBestPointIsKeptWhereTheCostRises) {
  Instance r = test::line({0, 1, 1, 3, 2, 5});
  Options options = precise(Method::sgd);
  options.learning_rate = 0.45;  // beyond 2 / largest eigenvalue: diverges
  options.max_iterations = 20;
  const Summary summary = minimize(r.problem, cpu(), options);
  double best = summary.initial_cost;
  for (const Iteration& row : summary.trace) best = std::min(best, row.cost);
  EXPECT_GT(summary.trace.back().cost, best);
  EXPECT_EQ(summary.final_cost, best);
  Instance again = test::line({0, 1, 1, 3, 2, 5});
  std::copy_n(r.problem.values(r.set).begin(), 2, again.problem.values(again.set).begin());
  Options none;
  none.max_iterations = 0;
  EXPECT_EQ(minimize(again.problem, cpu(), none).final_cost, best);
}

TEST(Minimize, AdamsFirstStepsAreTheFormulas) {
  // One variable, f = x^2 / 2 from 3: g = x; by hand in f64.
  Problem problem;
  const std::vector<double> start{3};
  const BlockSet set = problem.add_blocks("x", euclidean(1), start);
  const TermType type{"x", {1}, 0, [](const TermArguments& a) { return std::vector{a.x(0)}; }};
  problem.add_terms(type, {set}, std::vector<int32_t>{0}, {});
  Options options = precise(Method::adamw);
  options.learning_rate = 0.1;
  options.weight_decay = 0.5;
  options.max_iterations = 3;
  minimize(problem, cpu(), options);
  double x = 3, m = 0, v = 0;
  for (int t = 1; t <= 3; ++t) {
    m = 0.9 * m + 0.1 * x, v = 0.999 * v + 0.001 * x * x;
    const double step = 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    x -= step + 0.1 * 0.5 * x;
  }
  EXPECT_NEAR(problem.values(set)[0], x, 1e-12);
}

TEST(Minimize, FirstOrderStepsAreReadAtOnce) {
  for (const Method method : {Method::sgd, Method::adam, Method::adamw}) {
    SCOPED_TRACE(name(method));
    Instance net = test::net(5);
    Options options;
    options.method = method;
    options.learning_rate = 0.005;
    options.max_iterations = 8;
    options.function_tolerance = 0;
    int64_t before = 0;
    options.callback = [&](const Iteration& row) {
      const int64_t bytes = cpu().device().counters().bytes_from_device;
      if (row.iteration > 1)
        EXPECT_EQ(bytes - before, 5 * 8) << "cost, step, least and largest gradient, state";
      before = bytes;
      return true;
    };
    const Summary summary = minimize(net.problem, cpu(), options);
    EXPECT_EQ(summary.iterations, 8);
    EXPECT_LT(summary.final_cost, summary.initial_cost);
  }
}

TEST(Minimize, LinearLeastSquaresInOneStep) {
  const std::vector<double> ty{0, 1.1, 1, 2.9, 2, 5.2, 3, 6.8, 4, 9.3};
  Eigen::MatrixXd a(5, 2);
  Eigen::VectorXd b(5);
  for (int k = 0; k < 5; ++k) a(k, 0) = ty[size_t(2 * k)], a(k, 1) = 1, b[k] = ty[size_t(2 * k + 1)];
  const Eigen::VectorXd expected = a.colPivHouseholderQr().solve(b);
  for (const Linear linear : {Linear::dense_cholesky, Linear::dense_qr, Linear::cholesky}) {
    Instance line = test::line(ty);
    const Summary summary = minimize(line.problem, cpu(), precise(Method::gn, linear));
    EXPECT_NEAR(line.problem.values(line.set)[0], expected[0], 1e-12);
    EXPECT_NEAR(line.problem.values(line.set)[1], expected[1], 1e-12);
    EXPECT_LE(summary.iterations, 3);
    EXPECT_NEAR(summary.trace[0].gain, 1, 1e-9);
    EXPECT_NEAR(summary.final_cost, 0.5 * (a * expected - b).squaredNorm(), 1e-12);
  }
}

TEST(Minimize, RankDeficientJacobian) {
  // Only the sum of two numbers is seen.
  const auto make = [] {
    Instance out;
    const std::vector<double> start{5, -1};
    out.set = out.problem.add_blocks("x", euclidean(2), start);
    const TermType type{
        "sum", {2}, 1, [](const TermArguments& a) { return std::vector{a.x(0, 0) + a.x(0, 1) - a.data(0)}; }};
    out.problem.add_terms(type, {out.set}, std::vector<int32_t>{0, 0}, std::vector<double>{1, 3});
    return out;
  };
  for (const Method method : {Method::lm, Method::dogleg, Method::lbfgs})
    for (const Linear linear : kLinear) {
      SCOPED_TRACE(testing::Message() << name(method) << " " << name(linear));
      Instance r = make();
      const Summary summary = minimize(r.problem, cpu(), precise(method, linear));
      EXPECT_TRUE(converged(summary.termination)) << name(summary.termination) << " " << summary.message;
      EXPECT_NEAR(r.problem.values(r.set)[0] + r.problem.values(r.set)[1], 2, 1e-8);
      EXPECT_NEAR(summary.final_cost, 1, 1e-12);
    }
  Instance r = make();
  const Summary summary = minimize(r.problem, cpu(), precise(Method::gn, Linear::dense_qr));
  EXPECT_EQ(summary.termination, Termination::failure);
  EXPECT_NE(summary.message.find("rank 1 of 2"), std::string::npos) << summary.message;
  Instance c = make();
  const std::array<std::pair<BlockSet, int64_t>, 1> block{{{c.set, 0}}};
  EXPECT_THROW(covariance(c.problem, cpu(), block), InputError);
}

TEST(Minimize, NothingToDo) {
  Instance solved = test::line({0, 0, 1, 0});
  Summary summary = minimize(solved.problem, cpu());
  EXPECT_EQ(summary.termination, Termination::gradient_tolerance);
  EXPECT_EQ(summary.iterations, 0);
  EXPECT_EQ(summary.final_cost, 0);

  Instance limited = test::rosenbrock();
  Options none;
  none.max_iterations = 0;
  summary = minimize(limited.problem, cpu(), none);
  EXPECT_EQ(summary.termination, Termination::max_iterations);
  EXPECT_EQ(summary.final_cost, summary.initial_cost);

  Instance held = test::rosenbrock();
  held.problem.fix(held.set, 0);
  summary = minimize(held.problem, cpu());
  EXPECT_EQ(summary.termination, Termination::gradient_tolerance);
  EXPECT_EQ(held.problem.values(held.set)[0], -1.2);
}

TEST(Minimize, RefusesWhatItCannotStart) {
  Problem empty;
  EXPECT_THROW(minimize(empty, cpu()), InputError);

  Instance lonely = test::rosenbrock();
  const std::vector<double> more{1, 2, 3, 4};
  const BlockSet extra = lonely.problem.add_blocks("extra", euclidean(2), more);
  try {
    minimize(lonely.problem, cpu());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("block 0 of extra has no residuals"), std::string::npos)
        << error.what();
  }
  lonely.problem.fix(extra, 0), lonely.problem.fix(extra, 1);
  EXPECT_TRUE(converged(minimize(lonely.problem, cpu()).termination));

  Problem infinite;
  const std::vector<double> start{1, -1};
  const BlockSet set = infinite.add_blocks("x", euclidean(1), start);
  const TermType type{"root", {1}, 0, [](const TermArguments& a) { return std::vector{sqrt(a.x(0))}; }};
  infinite.add_terms(type, {set}, std::vector<int32_t>{0, 1}, {});
  for (const Method method : {Method::lm, Method::lbfgs, Method::adam}) try {
      minimize(infinite, cpu(), precise(method));
      FAIL();
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("instance 1 of root"), std::string::npos) << error.what();
    }

  Instance bad = test::rosenbrock();
  Options options;
  options.initial_damping = 0;
  EXPECT_THROW(minimize(bad.problem, cpu(), options), InputError);
  options = {};
  options.lbfgs_history = 0;
  EXPECT_THROW(minimize(bad.problem, cpu(), options), InputError);
}

TEST(Minimize, DerivativesThatAreNotFiniteEndIt) {
  Problem problem;
  const std::vector<double> start{0};
  const BlockSet set = problem.add_blocks("x", euclidean(1), start);
  const TermType type{"root", {1}, 0, [](const TermArguments& a) { return std::vector{sqrt(a.x(0)) - 1}; }};
  problem.add_terms(type, {set}, std::vector<int32_t>{0}, {});
  const Summary summary = minimize(problem, cpu());
  EXPECT_EQ(summary.termination, Termination::failure);
  EXPECT_NE(summary.message.find("not finite"), std::string::npos);
}

TEST(Minimize, StepsThatLeaveTheDomainAreShortened) {
  // log(x) - 3 from x = 100: an undamped step jumps to a negative x.
  for (const Method method : {Method::lm, Method::gn, Method::dogleg, Method::lbfgs}) {
    SCOPED_TRACE(name(method));
    Problem problem;
    const std::vector<double> start{100};
    const BlockSet set = problem.add_blocks("x", euclidean(1), start);
    const TermType type{"log", {1}, 0, [](const TermArguments& a) { return std::vector{log(a.x(0)) + 3}; }};
    problem.add_terms(type, {set}, std::vector<int32_t>{0}, {});
    const Summary summary = minimize(problem, cpu(), precise(method));
    EXPECT_TRUE(converged(summary.termination)) << name(summary.termination);
    EXPECT_NEAR(problem.values(set)[0], std::exp(-3), 1e-8);
  }
}

TEST(Minimize, BoundsHoldAndStillReachTheLeastCost) {
  // Closest point of the box [0, 2] x [-1, 0.25] to Rosenbrock's minimum, along its valley.
  for (const Method method : {Method::lm, Method::dogleg, Method::gn, Method::lbfgs}) {
    SCOPED_TRACE(name(method));
    Instance r = test::rosenbrock();
    r.problem.values(r.set)[0] = 0.1, r.problem.values(r.set)[1] = -0.5;
    r.problem.bound(r.set, 0, 0, 0, 2);
    r.problem.bound(r.set, 0, 1, -1, 0.25);
    const Summary summary = minimize(r.problem, cpu(), precise(method));
    EXPECT_EQ(r.problem.values(r.set)[1], 0.25);
    const double x = r.problem.values(r.set)[0];
    // Stationary along x: -200 x (0.25 - x^2) - (1 - x) = 0 (half of the usual factors).
    EXPECT_NEAR(-200 * x * (0.25 - x * x) - (1 - x), 0, 1e-6) << name(summary.termination);
    EXPECT_NEAR(x, 0.505, 0.01);
    EXPECT_TRUE(converged(summary.termination)) << name(summary.termination);
  }
  Instance outside = test::rosenbrock();
  outside.problem.bound(outside.set, 0, 0, 0, 2);
  EXPECT_THROW(minimize(outside.problem, cpu()), InputError);
}

TEST(Minimize, BoundsHoldWithIterativeSolvers) {
  for (const Method method : {Method::lm, Method::dogleg, Method::gn}) {
    SCOPED_TRACE(name(method));
    Instance r = test::rosenbrock();
    r.problem.values(r.set)[0] = 0.1, r.problem.values(r.set)[1] = -0.5;
    r.problem.bound(r.set, 0, 0, 0, 2);
    r.problem.bound(r.set, 0, 1, -1, 0.25);
    const Summary summary = minimize(r.problem, cpu(), precise(method, Linear::pcg));
    EXPECT_EQ(r.problem.values(r.set)[1], 0.25);
    const double x = r.problem.values(r.set)[0];
    EXPECT_NEAR(-200 * x * (0.25 - x * x) - (1 - x), 0, 1e-6) << name(summary.termination);
    EXPECT_TRUE(converged(summary.termination)) << name(summary.termination);
  }
  // Points of a net between two planes, some of which press against them; each linear solver ends there.
  std::vector<double> direct;
  for (const Linear linear : {Linear::cholesky, Linear::pcg}) {
    SCOPED_TRACE(name(linear));
    Instance net = test::net(9);
    const std::span<double> x = net.problem.values(net.set);
    for (size_t k = 0; k < x.size(); k += 3) {
      const double low = std::min(x[k + 2], -0.02), high = std::max(x[k + 2], 0.01);
      net.problem.bound(net.set, int64_t(k / 3), 2, low, high);
    }
    const Summary summary = minimize(net.problem, cpu(), precise(Method::lm, linear));
    EXPECT_TRUE(converged(summary.termination)) << name(summary.termination);
    if (direct.empty())
      direct = {summary.final_cost};
    else
      EXPECT_NEAR(summary.final_cost, direct[0], 1e-7 * direct[0] + 1e-14);
  }
}

TEST(Minimize, TheIdentityDampsEveryUnknownAlike) {
  // r = (100 (x - 1), y - 1) from (0, 0): a step of (J^T J + lambda I) with lambda = 1.
  for (const Linear linear : {Linear::dense_cholesky, Linear::dense_qr, Linear::cholesky, Linear::pcg}) {
    for (const Damping damping : {Damping::diagonal, Damping::identity}) {
      SCOPED_TRACE(fmt::format("{} {}", name(linear), name(damping)));
      Problem problem;
      const std::vector<double> start{0, 0};
      const BlockSet set = problem.add_blocks("x", euclidean(2), start);
      problem.add_terms(
          {"line",
           {2},
           0,
           [](const TermArguments& a) { return std::vector{100 * (a.x(0, 0) - 1), a.x(0, 1) - 1}; }},
          {set}, std::vector<int32_t>{0}, {});
      Options options = precise(Method::lm, linear);
      options.initial_damping = 1;
      options.damping = damping;
      options.max_iterations = 1;
      options.forcing = 1e-14;
      minimize(problem, cpu(), options);
      const double stiff = damping == Damping::identity ? 1e4 / (1e4 + 1) : 0.5;
      EXPECT_NEAR(problem.values(set)[0], stiff, 1e-12);
      EXPECT_NEAR(problem.values(set)[1], 0.5, 1e-12);
      options.max_iterations = 100;
      EXPECT_TRUE(converged(minimize(problem, cpu(), options).termination));
      EXPECT_NEAR(problem.values(set)[0], 1, 1e-9);
    }
  }
  for (const Method method : {Method::dogleg, Method::lm}) {
    Options options = precise(method);
    options.damping = Damping::identity;
    options.initial_radius = 0.5;
    Instance r = test::rosenbrock();
    const Summary summary = minimize(r.problem, cpu(), options);
    EXPECT_TRUE(converged(summary.termination));
    if (method == Method::dogleg) EXPECT_LE(summary.trace[0].step_norm, 0.5 * (1 + 1e-12));
    EXPECT_NEAR(r.problem.values(r.set)[0], 1, 1e-8);
  }
}

TEST(Minimize, BatchesOfAnySizeTakeTheSameStepsAndTellWhatTheyDid) {
  const auto run = [](int64_t batch_size, Linear linear) {
    Instance circle = test::net(5);  // fewer springs than groups take
    Options options = precise(Method::lm, linear);
    options.batch_size = batch_size;
    options.max_iterations = 12;
    const Summary summary = minimize(circle.problem, cpu(), options);
    const auto x = circle.problem.values(circle.set);
    return std::pair(summary, std::vector<double>(x.begin(), x.end()));
  };
  for (const Linear linear : {Linear::cholesky, Linear::pcg}) {
    const auto [whole, x] = run(0, linear);
    const auto [split, y] = run(13, linear);
    EXPECT_EQ(x, y);
    EXPECT_EQ(whole.final_cost, split.final_cost);
    EXPECT_GT(split.batches.size(), whole.batches.size());
    int64_t instances = 0;
    for (const BatchReport& b : split.batches) {
      EXPECT_LE(b.instances, 13);
      EXPECT_GT(b.launch_s, 0);
      instances += b.instances * b.residuals;
    }
    EXPECT_EQ(instances, split.residuals);
    EXPECT_LT(split.scratch_bytes, whole.scratch_bytes);
    EXPECT_EQ(split.kernels, whole.kernels);  // topologies
    EXPECT_GT(split.bytes_to_device, 0);
    EXPECT_GT(split.bytes_from_device, 0);
  }
  Instance bad = test::rosenbrock();
  Options options;
  options.batch_size = -1;
  EXPECT_THROW(minimize(bad.problem, cpu(), options), InputError);
}

TEST(Minimize, RobustLossesIgnoreAnOutlier) {
  std::vector<double> ty;
  for (int k = 0; k < 40; ++k) {
    ty.push_back(0.1 * k);
    ty.push_back(2 * 0.1 * k + 1 + 0.01 * std::sin(3.0 * k) + (k == 7 ? 30 : 0));
  }
  Instance plain = test::line(ty);
  minimize(plain.problem, cpu());
  EXPECT_GT(std::abs(plain.problem.values(plain.set)[1] - 1), 0.3);
  for (const char* text : {"huber:0.05", "cauchy:0.05", "tukey:2", "geman_mcclure:0.5", "arctan:0.5"}) {
    SCOPED_TRACE(text);
    Instance line = test::line(ty, parse_robust_loss(text));
    line.problem.values(line.set)[0] = 1.9, line.problem.values(line.set)[1] = 1.1;
    const Summary summary = minimize(line.problem, cpu(), precise(Method::lm));
    EXPECT_TRUE(converged(summary.termination));
    EXPECT_NEAR(line.problem.values(line.set)[0], 2, 0.02);
    EXPECT_NEAR(line.problem.values(line.set)[1], 1, 0.02);
    // The optimum is stationary for the sum of rho: checked by L-BFGS, which uses no Gauss-Newton model.
    Instance other = test::line(ty, parse_robust_loss(text));
    other.problem.values(other.set)[0] = 1.9, other.problem.values(other.set)[1] = 1.1;
    minimize(other.problem, cpu(), precise(Method::lbfgs));
    EXPECT_NEAR(other.problem.values(other.set)[0], line.problem.values(line.set)[0], 1e-7);
  }
}

TEST(Minimize, SparseSolversAgreeOnANet) {
  const auto run = [](Method method, Linear linear) {
    Instance net = test::net(9);
    const Summary summary = minimize(net.problem, cpu(), precise(method, linear));
    EXPECT_TRUE(converged(summary.termination))
        << name(method) << name(linear) << " " << name(summary.termination);
    return summary.final_cost;
  };
  const double expected = run(Method::lm, Linear::dense_cholesky);
  EXPECT_GT(expected, 0.1);
  for (const Linear linear : {Linear::cholesky, Linear::pcg, Linear::dense_schur})
    EXPECT_NEAR(run(Method::lm, linear), expected, 1e-9 * expected) << name(linear);
  EXPECT_NEAR(run(Method::dogleg, Linear::cholesky), expected, 1e-9 * expected);
  EXPECT_NEAR(run(Method::lbfgs, Linear::automatic), expected, 1e-9 * expected);
}

TEST(Minimize, AnEnergyByNewton) {
  // cosh(x) + x^2 y^2 + (y - 2)^2: convex near its minimum, an energy, not a sum of squares.
  for (const Method method : {Method::newton, Method::lm, Method::lbfgs}) {
    SCOPED_TRACE(name(method));
    Problem problem;
    const std::vector<double> start{1.5, -1};
    const BlockSet set = problem.add_blocks("xy", euclidean(2), start);
    TermType type{
        "energy", {2}, 0, [](const TermArguments& a) {
          return std::vector{cosh(a.x(0, 0)) + square(a.x(0, 0)) * square(a.x(0, 1)) + square(a.x(0, 1) - 2)};
        }};
    type.energy = true;
    problem.add_terms(type, {set}, std::vector<int32_t>{0}, {});
    const Summary summary = minimize(problem, cpu(), precise(method));
    EXPECT_TRUE(converged(summary.termination)) << name(summary.termination);
    EXPECT_NEAR(problem.values(set)[0], 0, 1e-8);
    EXPECT_NEAR(problem.values(set)[1], 2, 1e-8);
    EXPECT_NEAR(summary.final_cost, 1, 1e-12);
    Options qr = precise(Method::lm, Linear::dense_qr);
    EXPECT_THROW(minimize(problem, cpu(), qr), InputError);
  }
}

TEST(Minimize, RotationsByEveryMethod) {
  // The rotation that turns three directions into three others.
  for (const Method method : {Method::lm, Method::gn, Method::dogleg, Method::lbfgs}) {
    SCOPED_TRACE(name(method));
    Problem problem;
    const std::vector<double> start{1, 0, 0, 0};
    const BlockSet set = problem.add_blocks("q", so3(), start);
    const TermType type{"turn", {4}, 6, [](const TermArguments& a) {
                          const autodiff::Vec3 from{{a.data(0), a.data(1), a.data(2)}};
                          const autodiff::Vec3 turned = rotate(a.quaternion(0), from);
                          return std::vector{turned[0] - a.data(3), turned[1] - a.data(4),
                                             turned[2] - a.data(5)};
                        }};
    const double w = std::cos(0.6), z = std::sin(0.6);  // 1.2 rad about z
    const double c = std::cos(1.2), s = std::sin(1.2);
    problem.add_terms(type, {set}, std::vector<int32_t>{0, 0, 0},
                      std::vector<double>{1, 0, 0, c, s, 0, 0, 1, 0, -s, c, 0, 0, 0, 1, 0, 0, 1});
    const Summary summary = minimize(problem, cpu(), precise(method));
    EXPECT_LT(summary.final_cost, 1e-16) << name(summary.termination);
    EXPECT_NEAR(problem.values(set)[0], w, 1e-8);
    EXPECT_NEAR(problem.values(set)[3], z, 1e-8);
  }
}

TEST(Minimize, CovarianceIsTheClosedForm) {
  const std::vector<double> ty{0, 1.1, 1, 2.9, 2, 5.2, 3, 6.8, 4, 9.3};
  Instance line = test::line(ty);
  minimize(line.problem, cpu());
  const std::array<std::pair<BlockSet, int64_t>, 1> block{{{line.set, 0}}};
  const std::vector<double> c = covariance(line.problem, cpu(), block);
  Eigen::Matrix2d normal;
  normal << 30, 10, 10, 5;
  const Eigen::Matrix2d inverse = normal.inverse();
  for (int k = 0; k < 4; ++k) EXPECT_NEAR(c[size_t(k)], inverse.data()[k], 1e-12);

  // Sparse path and dense path, a block that is requested twice, two blocks.
  Instance net = test::net(5);
  minimize(net.problem, cpu());
  const std::array<std::pair<BlockSet, int64_t>, 2> two{{{net.set, 12}, {net.set, 7}}};
  const std::vector<double> joint = covariance(net.problem, cpu(), two);
  ASSERT_EQ(joint.size(), 36u);
  for (int i = 0; i < 6; ++i) {
    EXPECT_GT(joint[size_t(i * 7)], 0);
    for (int j = 0; j < 6; ++j) EXPECT_EQ(joint[size_t(i * 6 + j)], joint[size_t(j * 6 + i)]);
  }
  const std::array<std::pair<BlockSet, int64_t>, 1> corner{{{net.set, 0}}};
  EXPECT_THROW(covariance(net.problem, cpu(), corner), InputError);
}

TEST(Minimize, ReportsWhatItDid) {
  Instance r = test::rosenbrock();
  int calls = 0;
  Options options = precise(Method::lm);
  options.callback = [&](const Iteration& row) { return ++calls == row.iteration && calls < 4; };
  const Summary summary = minimize(r.problem, cpu(), options);
  EXPECT_EQ(summary.termination, Termination::stopped);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(summary.iterations, 4);
  EXPECT_EQ(summary.residuals, 2);
  EXPECT_EQ(summary.variables, 2);
  EXPECT_EQ(summary.kernels, 1);
  EXPECT_EQ(summary.linear_used, Linear::dense_qr);
  EXPECT_EQ(summary.device, "cpu");
  for (const char* part : {"total", "evaluate", "linear", "step"})
    EXPECT_EQ(summary.seconds.count(part), 1u) << part;
  const std::string text = report(summary);
  for (const char* part :
       {"Given", "Used", "dense-qr", "auto", "Termination: NO_CONVERGENCE (stopped)", "Initial"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::solve
