// Host terms compared with the same terms as expressions: equal costs, derivatives and minima; faults have names.
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <atomic>
#include <cmath>
#include <numeric>

#include "core/refusal.hpp"
#include "lockstep/solve/covariance.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "problems.hpp"

namespace lockstep::solve::test {
namespace {

using lockstep::test::refusal;

Context cpu() {
  ContextOptions options;
  options.device = "cpu";
  return Context(options);
}

/// |a - b| - length of points.
HostTerm host_spring(RobustLoss loss = {}, bool with_jacobian = true) {
  HostTerm term{"host_spring", {3, 3}, 1, 1, {}, {}, loss};
  const auto length = [](const HostInstance& at) {
    double squares = 0;
    for (size_t k = 0; k < 3; ++k)
      squares += (at.blocks[0][k] - at.blocks[1][k]) * (at.blocks[0][k] - at.blocks[1][k]);
    return std::sqrt(squares);
  };
  term.residual = [=](const HostInstance& at, std::span<double> r) { r[0] = length(at) - at.data[0]; };
  if (with_jacobian)
    term.jacobian = [=](const HostInstance& at, std::span<double> j) {
      for (size_t k = 0; k < 3; ++k) {
        j[k] = (at.blocks[0][k] - at.blocks[1][k]) / length(at);
        j[3 + k] = -j[k];
      }
    };
  return term;
}

/// The first three components of a pose's move and twice its rotation, from the expression itself: what differs is who
/// derives it.
HostTerm host_pose(RobustLoss loss = {}) {
  const auto graph = std::make_shared<autodiff::Tape>();
  std::vector<std::vector<Value>> blocks(2);
  std::vector<Value> data;
  for (auto& b : blocks)
    for (int k = 0; k < 7; ++k) b.push_back(graph->variable("x"));
  for (int k = 0; k < 7; ++k) data.push_back(graph->variable("d"));
  const std::vector<Value> residuals = pose_type().residual(TermArguments(*graph, blocks, data));
  HostTerm term{"host_pose", {7, 7}, 6, 7, {}, {}, loss};
  term.residual = [graph, residuals](const HostInstance& at, std::span<double> r) {
    std::vector<double> numbers(at.blocks[0].begin(), at.blocks[0].end());
    numbers.insert(numbers.end(), at.blocks[1].begin(), at.blocks[1].end());
    numbers.insert(numbers.end(), at.data.begin(), at.data.end());
    const std::vector<double> values = autodiff::evaluate<double>(residuals, numbers);
    std::copy(values.begin(), values.end(), r.begin());
  };
  return term;
}

struct Points {
  Problem problem;
  BlockSet points;
  TermSet springs;
};
/// Springs among eight points, of which the first is fixed.
template <class Term>
Points springs(const Term& type, int count = 20) {
  Points p;
  p.points = p.problem.add_blocks("points", euclidean(3), random_numbers(8 * 3, 1));
  p.problem.fix(p.points, 0);
  p.springs = p.problem.add_terms(type, {p.points, p.points}, random_tuples(count, 2, 8, 3),
                                  random_numbers(size_t(count), 5, 0.1, 1));
  return p;
}

void expect_equal(const Problem& host, const Problem& traced, double tolerance) {
  for (const bool loss : {true, false}) {
    EvaluateOptions options;
    options.normal = true, options.apply_loss = loss;
    Context context = cpu();
    const Evaluation a = evaluate(host, context, options), b = evaluate(traced, context, options);
    EXPECT_NEAR(a.cost, b.cost, 1e-13 * b.cost);
    expect_near(a.residuals, b.residuals, 1e-14, "residuals");
    expect_near(a.gradient, b.gradient, tolerance, "gradient");
    EXPECT_EQ(a.jacobian.first, b.jacobian.first);
    EXPECT_EQ(a.jacobian.column, b.jacobian.column);
    expect_near(a.jacobian.values, b.jacobian.values, tolerance, "J");
    expect_near(a.normal.values, b.normal.values, tolerance, "J^T J");
  }
}

const RobustLoss kLosses[] = {
    {}, {RobustLoss::Kind::huber, 0.2}, {RobustLoss::Kind::cauchy, 0.3}, tolerant_loss(0.1, 0.05)};

TEST(HostTerms, GiveWhatTheExpressionGives) {
  for (const RobustLoss& loss : kLosses) {
    Points traced = springs(spring_type(loss));
    Points given = springs(host_spring(loss)), differences = springs(host_spring(loss, false));
    expect_equal(given.problem, traced.problem, 1e-13);
    expect_equal(differences.problem, traced.problem, 1e-9);
    // Weights in addition to the loss's numbers.
    const std::vector<double> weights = random_numbers(20, 9, 0, 3);
    for (Points* p : {&traced, &given}) {
      p->problem.weigh(p->springs, weights);
      p->problem.enable(p->springs, 4, false);
    }
    expect_equal(given.problem, traced.problem, 1e-13);
  }
}

TEST(HostTerms, DeriveAlongManifolds) {
  std::vector<double> poses = random_numbers(6 * 7, 11), measured = random_numbers(9 * 7, 12);
  normalize_rows(poses, 7, 3, 4), normalize_rows(measured, 7, 3, 4);
  const std::vector<int32_t> edges = random_tuples(9, 2, 6, 13);
  Problem traced, host;
  for (Problem* p : {&traced, &host}) {
    const BlockSet set = p->add_blocks("poses", se3(), poses);
    p->fix(set, 2);
    if (p == &traced)
      p->add_terms(pose_type({RobustLoss::Kind::cauchy, 0.5}), {set, set}, edges, measured);
    else
      p->add_terms(host_pose({RobustLoss::Kind::cauchy, 0.5}), {set, set}, edges, measured);
  }
  expect_equal(host, traced, 1e-8);
}

TEST(HostTerms, MinimiseBesideTracedTermsByAllMethods) {
  for (const Method method : {Method::lm, Method::gn, Method::dogleg, Method::lbfgs}) {
    Context context = cpu();
    Points traced = springs(spring_type()), host = springs(spring_type(), 10);
    std::vector<int32_t> edges = random_tuples(20, 2, 8, 3);
    std::vector<double> lengths = random_numbers(20, 5, 0.1, 1);
    host.problem.add_terms(host_spring(), {host.points, host.points}, std::span(edges).subspan(20),
                           std::span(lengths).subspan(10));
    // Springs alone leave turns about the fixed point free.
    const TermType pull{"pull", {3}, 0, [](const TermArguments& a) {
                          return std::vector<Value>{0.3 * a.x(0, 0), 0.3 * a.x(0, 1), 0.3 * a.x(0, 2)};
                        }};
    for (Points* p : {&traced, &host})
      p->problem.add_terms(pull, {p->points}, std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7}, {});
    Options options;
    options.method = method, options.max_iterations = 500;
    const Summary a = minimize(traced.problem, context, options),
                  b = minimize(host.problem, context, options);
    EXPECT_NEAR(b.initial_cost, a.initial_cost, 1e-12 * a.initial_cost);
    EXPECT_NEAR(b.final_cost, a.final_cost, 1e-6 * a.final_cost) << name(method);
    EXPECT_TRUE(converged(b.termination)) << b.message;
  }
}

/// Products of J of a function, with all slots and without those of the eliminated set, are those of the expression.
TEST(HostTerms, AreInTheProductsOfConjugateGradients) {
  const auto build = [](bool by_host) {
    Problem problem;
    const BlockSet bodies = problem.add_blocks("bodies", euclidean(3), random_numbers(6 * 3, 31));
    const BlockSet marks = problem.add_blocks("marks", euclidean(3), random_numbers(40 * 3, 32));
    std::vector<int32_t> edges;
    for (int32_t m = 0; m < 40; ++m)
      for (int32_t k = 0; k < 4; ++k) edges.insert(edges.end(), {(m + k) % 6, m});
    const std::vector<double> lengths = random_numbers(160, 33, 0.5, 2);
    const RobustLoss loss{RobustLoss::Kind::cauchy, 0.8};
    if (by_host)
      problem.add_terms(host_spring(loss), {bodies, marks}, edges, lengths);
    else
      problem.add_terms(spring_type(loss), {bodies, marks}, edges, lengths);
    const TermType pull{"pull", {3}, 0, [](const TermArguments& a) {
                          return std::vector<Value>{0.3 * a.x(0, 0), 0.3 * a.x(0, 1), 0.3 * a.x(0, 2)};
                        }};
    std::vector<int32_t> all(40);
    std::iota(all.begin(), all.end(), 0);
    problem.add_terms(pull, {marks}, all, {});
    return problem;
  };
  for (const Linear linear : {Linear::pcg, Linear::schur_pcg})
    for (const Precision precision : {Precision::f64, Precision::mixed})
      for (const int64_t parts : {1, 3}) {
        Problem host = build(true), traced = build(false);
        Context context = cpu();
        Options options;
        options.linear = linear, options.parts = parts, options.precision = precision;
        options.max_iterations = 8, options.forcing = 1e-6;
        const Summary a = minimize(host, context, options), b = minimize(traced, context, options);
        const double tolerance = precision == Precision::f64 ? 1e-9 : 1e-3;
        ASSERT_EQ(a.trace.size(), b.trace.size()) << name(linear);
        for (size_t k = 0; k < a.trace.size(); ++k)
          EXPECT_NEAR(a.trace[k].cost, b.trace[k].cost, tolerance * b.trace[k].cost) << name(linear) << k;
        EXPECT_GT(a.linear_iterations, 8);
        EXPECT_LT(a.final_cost, 0.2 * a.initial_cost);
      }
}

/// Functions that share what is computed at a point: they are never called elsewhere, by any method.
TEST(HostTerms, ArePreparedForEachPoint) {
  struct Run {
    Method method;
    Linear linear = Linear::automatic;
    std::vector<std::string> inner = {};
  };
  for (const Run& o : {Run{Method::lm},
                       {Method::gn},
                       {Method::dogleg},
                       {Method::lbfgs},
                       {Method::adam},
                       {Method::lm, Linear::pcg},
                       {Method::lm, Linear::cholesky, {"points:1-3"}}}) {
    std::vector<double> at;
    bool strict = false, with_derivatives = false;
    int points = 0, faults = 0;
    HostTerm term = host_spring();
    const auto check = [&](const HostInstance& i, bool derivatives) {
      const auto holds = [&](std::span<const double> block) {
        for (size_t k = 0; k < at.size(); k += 3)
          if (std::equal(block.begin(), block.end(), at.begin() + int64_t(k))) return true;
        return false;
      };
      if (strict && !(holds(i.blocks[0]) && holds(i.blocks[1]) && (with_derivatives || !derivatives)))
        ++faults;
    };
    term.parallel = false;
    term.residual = [&, right = term.residual](const HostInstance& i, std::span<double> r) {
      check(i, false), right(i, r);
    };
    term.jacobian = [&, right = term.jacobian](const HostInstance& i, std::span<double> j) {
      check(i, true), right(i, j);
    };
    Points p = springs(term), plain = springs(host_spring());
    strict = true;
    Context context = cpu();
    Options options;
    options.method = o.method, options.linear = o.linear, options.inner_groups = o.inner;
    options.max_iterations = 12, options.learning_rate = 0.1;
    const Summary expected = minimize(plain.problem, context, options);
    options.prepare = [&](bool derivatives) {
      const auto now = p.problem.values(p.points);
      at.assign(now.begin(), now.end()), with_derivatives = derivatives, ++points;
    };
    const Summary found = minimize(p.problem, context, options);
    EXPECT_EQ(faults, 0) << name(o.method);
    EXPECT_EQ(found.final_cost, expected.final_cost);
    EXPECT_EQ(p.problem.state().values, plain.problem.state().values);
    EXPECT_GE(points, found.iterations) << name(o.method);
    EXPECT_LE(points, (o.inner.empty() ? 3 : 60) * found.iterations + 3) << name(o.method);
  }
  // Its error leaves, and the problem has its start; without functions it would never be called.
  Points p = springs(host_spring()), traced = springs(spring_type());
  const std::vector<double> before = p.problem.state().values;
  Context context = cpu();
  Options options;
  int calls = 0;
  options.prepare = [&](bool) {
    if (++calls == 3) throw InputError("no picture", "camera", "one");
  };
  EXPECT_NE(refusal([&] { minimize(p.problem, context, options); }).find("no picture"), std::string::npos);
  EXPECT_EQ(p.problem.state().values, before);
  EXPECT_NE(refusal([&] { minimize(traced.problem, context, options); }).find("without host terms"),
            std::string::npos);
}

TEST(HostTerms, ChangeAsOthersDo) {
  Points traced = springs(spring_type()), host = springs(host_spring());
  for (Points* p : {&traced, &host}) {
    p->problem.append_blocks(p->points, std::vector<double>{2, 3, 4});
    const std::vector<double> lengths = random_numbers(3, 21);
    p->problem.set_data(p->springs, lengths, 5);
  }
  const std::vector<int32_t> more{8, 1, 3, 8};
  traced.problem.add_terms(spring_type(), {traced.points, traced.points}, more, std::vector<double>{1, 2});
  host.problem.add_terms(host_spring(), {host.points, host.points}, more, std::vector<double>{1, 2});
  expect_equal(host.problem, traced.problem, 1e-13);
  Context context = cpu();
  const auto a = residuals_by_instance(host.problem, context),
             b = residuals_by_instance(traced.problem, context);
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    EXPECT_NEAR(a[k].norm, b[k].norm, 1e-14);
    EXPECT_EQ(a[k].instance, b[k].instance);
  }
  EXPECT_TRUE(check_derivatives(host.problem).empty());
}

TEST(HostTerms, FaultsAreNamed) {
  const auto with = [](auto residual) {
    HostTerm term = host_spring({}, false);
    term.residual = residual;
    return refusal([&] { springs(term); });
  };
  EXPECT_NE(with([](const HostInstance&, std::span<double>) {
              throw std::runtime_error("no table");
            }).find("no table"),
            std::string::npos);
  EXPECT_NE(with([](const HostInstance&, std::span<double>) {}).find("residual 0 is nan"), std::string::npos);
  EXPECT_NE(with([](const HostInstance&, std::span<double> r) { r[0] = INFINITY; }).find("instance 0"),
            std::string::npos);
  HostTerm wrong = host_spring();
  wrong.jacobian = [right = wrong.jacobian](const HostInstance& at, std::span<double> j) {
    right(at, j);
    j[4] = -j[4];
  };
  const std::string message = refusal([&] { springs(wrong); });
  EXPECT_NE(message.find("tangent coordinate 4"), std::string::npos) << message;
  HostTerm none = host_spring();
  none.residual = nullptr;
  EXPECT_NE(refusal([&] { springs(none); }).find("no residual"), std::string::npos);
  Context context = cpu();
  // In the middle of a minimisation the problem keeps its values.
  int calls = 0;
  bool counted = false;
  HostTerm late = host_spring();
  late.parallel = false;
  late.residual = [&, right = late.residual](const HostInstance& at, std::span<double> r) {
    if (counted && ++calls > 50) throw std::runtime_error("gone");
    right(at, r);
  };
  Points q = springs(late);
  counted = true;
  const std::vector<double> before(q.problem.values(q.points).begin(), q.problem.values(q.points).end());
  EXPECT_NE(refusal([&] { minimize(q.problem, context); }).find("gone"), std::string::npos);
  EXPECT_EQ(std::vector<double>(q.problem.values(q.points).begin(), q.problem.values(q.points).end()),
            before);
}

TEST(HostTerms, OfSeveralFaultsTheFirstInstanceIsNamed) {
  std::atomic<bool> broken = false;
  HostTerm term = host_spring();
  term.residual = [&broken, right = term.residual](const HostInstance& at, std::span<double> r) {
    right(at, r);
    if (broken && at.data[0] > 0.4) throw std::runtime_error("too long");
  };
  std::vector<double> lengths(300, 0.3);
  for (const size_t k : {17, 18, 150, 299}) lengths[k] = 0.5;
  Points p;
  p.points = p.problem.add_blocks("points", euclidean(3), random_numbers(8 * 3, 1));
  p.problem.add_terms(term, {p.points, p.points}, random_tuples(300, 2, 8, 3), lengths);
  broken = true;
  Context context = cpu();
  for (int again = 0; again < 20; ++again) {
    const std::string message = refusal([&] { evaluate(p.problem, context); });
    EXPECT_NE(message.find("host_spring, instance 17]"), std::string::npos) << message;
    EXPECT_NE(message.find("too long"), std::string::npos) << message;
  }
}

/// A trial point without a value is a step too far, as of traced terms.
TEST(HostTerms, StepsToWhereThereIsNoValueAreTakenBack) {
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(1), std::vector<double>{4});
  HostTerm root{"root", {1}, 1, 0, {}};
  root.residual = [](const HostInstance& at, std::span<double> r) {
    r[0] = std::sqrt(at.blocks[0][0]) - 0.1;
  };
  problem.add_terms(root, {x}, std::vector<int32_t>{0});
  Context context = cpu();
  const Summary summary = minimize(problem, context);
  EXPECT_TRUE(converged(summary.termination)) << summary.message;
  EXPECT_NEAR(problem.value(x, 0)[0], 0.01, 1e-9);
}

TEST(HostTerms, HaveTheSameBitsForEveryNumberOfThreads) {
  std::vector<Evaluation> found;
  std::vector<std::vector<double>> minima;
  for (const size_t threads : {1, 2, 5}) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    ContextOptions options;
    options.device = "cpu", options.threads = int(threads);
    Context context(options);
    Points p = springs(host_spring({RobustLoss::Kind::cauchy, 0.3}, false), 200);
    EvaluateOptions all;
    all.normal = true;
    found.push_back(evaluate(p.problem, context, all));
    minimize(p.problem, context);
    const std::span<const double> values = std::as_const(p.problem).values(p.points);
    minima.emplace_back(values.begin(), values.end());
  }
  for (size_t k = 1; k < found.size(); ++k) {
    EXPECT_EQ(found[k].cost, found[0].cost);
    EXPECT_EQ(found[k].gradient, found[0].gradient);
    EXPECT_EQ(found[k].jacobian.values, found[0].jacobian.values);
    EXPECT_EQ(found[k].normal.values, found[0].normal.values);
    EXPECT_EQ(minima[k], minima[0]);
  }
}

TEST(HostTerms, MinimiseInSinglePrecision) {
  Context context = cpu();
  Points traced = springs(spring_type());
  const double expected = minimize(traced.problem, context).final_cost;
  for (const Precision precision : {Precision::f32, Precision::mixed}) {
    Points host = springs(host_spring());
    Options options;
    options.precision = precision, options.function_tolerance = 1e-6;
    EXPECT_NEAR(minimize(host.problem, context, options).final_cost, expected, 1e-4 * expected)
        << int(precision);
  }
}

TEST(HostTerms, HaveCovariances) {
  Points traced = springs(spring_type()), host = springs(host_spring());
  Context context = cpu();
  minimize(traced.problem, context);
  const std::span<const double> there = std::as_const(traced.problem).values(traced.points);
  std::ranges::copy(there, host.problem.values(host.points).begin());
  // The springs leave turns about the fixed point free.
  const CovarianceOptions free{.gauge = CovarianceOptions::Gauge::complement};
  expect_near(Covariance(host.problem, context, free).block(host.points, 3),
              Covariance(traced.problem, context, free).block(traced.points, 3), 1e-9, "covariance");
}

}  // namespace
}  // namespace lockstep::solve::test
