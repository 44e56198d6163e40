// Problems that change between minimisations equal problems that were built that way; losses of all kinds.
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "problems.hpp"
#include "solve/reference.hpp"

namespace lockstep::solve::test {
namespace {

ContextOptions interp() {
  ContextOptions options;
  options.device = "interp";
  return options;
}

double cost_of(const Problem& problem) {
  Context context(interp());
  EvaluateOptions options;
  options.residuals = options.jacobian = options.gradient = false;
  return evaluate(problem, context, options).cost;
}

struct Springs {
  Problem problem;
  BlockSet points;
  TermSet near, far;
  std::vector<int32_t> near_edges = random_tuples(20, 2, 8, 3), far_edges = random_tuples(9, 2, 8, 4);
  std::vector<double> near_lengths = random_numbers(20, 5, 0.1, 1),
                      far_lengths = random_numbers(9, 6, 0.1, 1);
  explicit Springs(bool with_far = true) {
    points = problem.add_blocks("points", euclidean(3), random_numbers(8 * 3, 1));
    near = problem.add_terms(spring_type(), {points, points}, near_edges, near_lengths);
    if (with_far)
      far = problem.add_terms(spring_type({RobustLoss::Kind::huber, 0.3}), {points, points}, far_edges,
                              far_lengths);
  }
};

TEST(Changes, RemovedAndDisabledTermsAreAsIfNeverAdded) {
  Springs whole, without(false);
  const double all = cost_of(whole.problem), near = cost_of(without.problem);
  EXPECT_GT(all, near);
  whole.problem.enable(whole.far, false);
  EXPECT_EQ(cost_of(whole.problem), near);
  EXPECT_EQ(whole.problem.residual_count(), 20);
  EXPECT_FALSE(whole.problem.enabled(whole.far, 3));
  whole.problem.enable(whole.far);
  EXPECT_EQ(cost_of(whole.problem), all);
  for (int k = 0; k < 9; ++k) whole.problem.enable(whole.far, k, false);
  EXPECT_EQ(cost_of(whole.problem), near);
  whole.problem.enable(whole.far, 8);  // a number is an instance
  EXPECT_EQ(whole.problem.residual_count(), 21);
  whole.problem.remove(whole.far);
  EXPECT_EQ(cost_of(whole.problem), near);
  EXPECT_EQ(whole.problem.instance_count(whole.far), 0);
  // Another set of the same expression after the removal.
  const TermSet again =
      whole.problem.add_terms(spring_type({RobustLoss::Kind::huber, 0.3}), {whole.points, whole.points},
                              whole.far_edges, whole.far_lengths);
  EXPECT_EQ(cost_of(whole.problem), all);
  EXPECT_EQ(whole.problem.instance_count(again), 9);
  EXPECT_THROW(whole.problem.enable(again, 9, true), InputError);
  EXPECT_THROW(whole.problem.remove({77}), InputError);
}

TEST(Changes, NewDataIsThatOfAProblemBuiltWithIt) {
  Springs springs, expected;
  std::vector<double> lengths = springs.near_lengths;
  lengths[4] = 2.5, lengths[5] = 0.7;
  Problem built;
  const BlockSet points = built.add_blocks("points", euclidean(3), random_numbers(8 * 3, 1));
  built.add_terms(spring_type(), {points, points}, springs.near_edges, lengths);
  built.add_terms(spring_type({RobustLoss::Kind::huber, 0.3}), {points, points}, springs.far_edges,
                  springs.far_lengths);
  springs.problem.set_data(springs.near, std::vector<double>{2.5, 0.7}, 4);
  EXPECT_EQ(cost_of(springs.problem), cost_of(built));
  EXPECT_THROW(springs.problem.set_data(springs.near, std::vector<double>{1, 2}, 19), InputError);
  EXPECT_THROW(springs.problem.set_data(springs.near, std::vector<double>{NAN}, 0), InputError);
}

TEST(Changes, WeightsScaleAnInstancesPart) {
  Springs springs;
  std::vector<double> weights(9, 1);
  weights[2] = 0, weights[5] = 4;
  springs.problem.weigh(springs.far, weights);
  springs.problem.weigh(springs.near, 0.25);
  const auto& x = springs.problem.state().values;
  Context context(interp());
  const Evaluation e = evaluate(springs.problem, context);
  EXPECT_NEAR(e.cost, reference::cost<double>(springs.problem, x), 1e-13);
  Springs disabled;
  disabled.problem.enable(disabled.far, 2, false);
  disabled.problem.enable(disabled.near, false);
  const double far = cost_of(disabled.problem);
  for (int k = 0; k < 9; ++k) disabled.problem.enable(disabled.far, k, k == 5);
  EXPECT_NEAR(e.cost, far + 3 * cost_of(disabled.problem) + 0.25 * cost_of(Springs(false).problem), 1e-13);
  const std::vector<double> g = reference::gradient(springs.problem, x);
  for (size_t k = 0; k < g.size(); ++k) EXPECT_NEAR(e.gradient[k], g[k], 1e-12);
  EXPECT_THROW(springs.problem.weigh(springs.far, -1.0), InputError);
  EXPECT_THROW(springs.problem.weigh(springs.far, std::vector<double>(3, 1)), InputError);
}

TEST(Changes, AppendedBlocksAreThoseOfALargerSet) {
  const std::vector<double> x = random_numbers(10 * 3, 1), y = random_numbers(4 * 2, 2);
  const auto pull = [](const TermArguments& a) {
    return std::vector<Value>{a.x(0, 0) - a.x(1, 0), a.x(0, 2) * a.x(1, 1)};
  };
  const TermType mixed{"mixed", {3, 2}, 0, pull};
  const std::vector<int32_t> seen{0, 0, 1, 1, 2, 3, 5, 2};
  Problem at_once, grown;
  const BlockSet a = at_once.add_blocks("a", euclidean(3), x), b = at_once.add_blocks("b", euclidean(2), y);
  at_once.add_terms(mixed, {a, b}, seen, {});
  at_once.add_residuals(std::vector<Value>{at_once.variable(b, 3, 1) * 0.5 - 2.0});
  at_once.add_terms(mixed, {a, b}, std::vector<int32_t>{9, 3}, {});
  const BlockSet c = grown.add_blocks("a", euclidean(3), std::span(x).first(18));
  const BlockSet d = grown.add_blocks("b", euclidean(2), y);
  grown.bound(d, 3, 1, -5, 5);
  grown.add_terms(mixed, {c, d}, seen, {});
  const Value variable = grown.variable(d, 3, 1);
  grown.append_blocks(c, std::span(x).subspan(18));
  EXPECT_EQ(grown.block_count(c), 10);
  EXPECT_EQ(grown.values(d)[7], y[7]);
  grown.add_residuals(std::vector<Value>{variable * 0.5 - 2.0});
  grown.add_terms(mixed, {c, d}, std::vector<int32_t>{9, 3}, {});
  EXPECT_EQ(cost_of(grown), cost_of(at_once));
  Context context(interp());
  EXPECT_EQ(evaluate(grown, context).gradient, evaluate(at_once, context).gradient);
  EXPECT_THROW(grown.append_blocks(c, std::vector<double>{1, 2}), InputError);
}

TEST(Changes, HeldCoordinatesStayForEveryMethod) {
  for (const Method method : {Method::lm, Method::dogleg, Method::lbfgs, Method::adam})
    for (const Linear linear : {Linear::automatic, Linear::cholesky, Linear::pcg}) {
      if (method != Method::lm && linear != Linear::automatic) continue;
      Problem problem;
      const double start[] = {0.1, 0.2, 1, 0, 0, 0, 0.3, 0.1, 0.9, 0.1, -0.2, 0.3};
      std::vector<double> poses(start, start + 7);
      const BlockSet set = problem.add_blocks("p", euclidean(4), std::span(start).first(8));
      problem.add_terms({"pull",
                         {4, 4},
                         1,
                         [](const TermArguments& a) {
                           std::vector<Value> r;
                           for (int k = 0; k < 4; ++k) r.push_back(a.x(0, k) - double(k + 1));
                           r.push_back(a.x(1, 1) * a.x(0, 0) - a.data(0));
                           for (int k = 0; k < 4; ++k) r.push_back(a.x(1, k) - 0.5 * double(k));
                           return r;
                         }},
                        {set, set}, std::vector<int32_t>{0, 1}, std::vector<double>{0.7});
      const int held[] = {0, 2};
      problem.fix_coordinates(set, 0, held);
      EXPECT_EQ(problem.variable_count(), 6);
      Options options;
      options.method = method, options.linear = linear, options.max_iterations = 40;
      Context context(interp());
      const Summary summary = minimize(problem, context, options);
      EXPECT_EQ(problem.values(set)[0], start[0]);
      EXPECT_EQ(problem.values(set)[2], start[2]);
      EXPECT_LT(summary.final_cost, summary.initial_cost);
      if (method == Method::lm) { EXPECT_NEAR(problem.values(set)[3], 4, 1e-6); }
    }
}

TEST(Losses, OfEveryKindAreTheirFormulas) {
  const double s = 2.3;
  const auto value = [&](const RobustLoss& loss) {
    autodiff::Tape graph;
    const Value v = graph.variable("s");
    return autodiff::evaluate<double>(robust_loss(loss, v), std::vector<double>{s});
  };
  EXPECT_NEAR(value(parse_robust_loss("soft_l1:0.7")), 2 * 0.49 * (std::sqrt(1 + s / 0.49) - 1), 1e-14);
  EXPECT_NEAR(value(parse_robust_loss("tolerant:1,0.2")),
              0.2 * std::log(1 + std::exp((s - 1) / 0.2)) - 0.2 * std::log(1 + std::exp(-1 / 0.2)), 1e-13);
  const RobustLoss cauchy = parse_robust_loss("cauchy:0.5"), huber = parse_robust_loss("huber:1.1");
  EXPECT_NEAR(value(scaled_loss(cauchy, 3)), 3 * 0.25 * std::log(1 + s / 0.25), 1e-13);
  const double inner = 2 * 1.1 * std::sqrt(s) - 1.21;
  EXPECT_NEAR(value(composed_loss(cauchy, huber)), 0.25 * std::log(1 + inner / 0.25), 1e-13);
  for (const char* text : {"tolerant:1", "tolerant:1,0", "tolerant:-1,1", "soft_l1:0", "tolerant:1,2,3"})
    EXPECT_THROW(parse_robust_loss(text), InputError) << text;
  EXPECT_THROW(scaled_loss(cauchy, -1), InputError);
  EXPECT_THROW(expression_loss({}), InputError);
}

TEST(Losses, ByExpressionAreDerivedLikeNamedOnes) {
  const auto problem_with = [](const RobustLoss& loss) {
    Springs springs(false);
    springs.problem.add_terms(spring_type(loss), {springs.points, springs.points}, springs.far_edges,
                              springs.far_lengths);
    return std::move(springs.problem);
  };
  Context context(interp());
  const Problem named = problem_with(parse_robust_loss("cauchy:0.3"));
  const Problem written =
      problem_with(expression_loss([](const Value& s) { return 0.09 * log1p(s / 0.09); }));
  const Evaluation a = evaluate(named, context), b = evaluate(written, context);
  EXPECT_NEAR(a.cost, b.cost, 1e-15);
  for (size_t k = 0; k < a.gradient.size(); ++k) EXPECT_NEAR(a.gradient[k], b.gradient[k], 1e-14);
  for (const RobustLoss& loss :
       {tolerant_loss(0.3, 0.1), scaled_loss(parse_robust_loss("tukey:0.9"), 0.4),
        composed_loss(parse_robust_loss("huber:0.2"), parse_robust_loss("soft_l1:1"))}) {
    const Problem problem = problem_with(loss);
    const Evaluation e = evaluate(problem, context);
    const auto& x = problem.state().values;
    EXPECT_NEAR(e.cost, reference::cost<double>(problem, x), 1e-14);
    const std::vector<double> g = reference::gradient(problem, x);
    for (size_t k = 0; k < g.size(); ++k) EXPECT_NEAR(e.gradient[k], g[k], 1e-12);
  }
  // Other numbers in the same expression are data: one batch.
  Springs both(false);
  for (const double a2 : {0.3, 0.5})
    both.problem.add_terms(spring_type(tolerant_loss(a2, 0.1)), {both.points, both.points}, both.far_edges,
                           both.far_lengths);
  EXPECT_EQ(both.problem.batch_count(), 2);
  EXPECT_THROW(problem_with(expression_loss([](const Value& s) { return s + 1.0; })), InputError);
}

/// A line through points of which a third lies far off, from a start that the outliers pull.
Problem line_with_outliers(BlockSet& line) {
  Problem problem;
  line = problem.add_blocks("line", euclidean(2), std::vector<double>{-6, 30});
  std::vector<double> data;
  for (int k = 0; k < 30; ++k)
    data.insert(data.end(), {0.1 * k, k % 3 == 0 ? 40.0 - 2 * k : 1 + 0.2 * k + 0.01 * std::sin(7.0 * k)});
  problem.add_terms({"line",
                     {2},
                     2,
                     [](const TermArguments& a) {
                       return std::vector<Value>{a.x(0, 0) * a.data(0) + a.x(0, 1) - a.data(1)};
                     },
                     parse_robust_loss("geman_mcclure:0.1")},
                    {line}, std::vector<int32_t>(30, 0), data);
  return problem;
}

TEST(Graduation, FindsTheLineThatAFarStartMisses) {
  BlockSet plain_line, line;
  Context context(interp());
  Problem plain = line_with_outliers(plain_line);
  minimize(plain, context);
  Problem graduated = line_with_outliers(line);
  Options options;
  options.graduation.factor = 1.4;
  int last = 0, calls = 0;
  options.callback = [&](const Iteration& i) {
    last = i.iteration, ++calls;
    return true;
  };
  const Summary summary = minimize(graduated, context, options);
  EXPECT_NEAR(graduated.values(line)[0], 2, 0.05);
  EXPECT_NEAR(graduated.values(line)[1], 1, 0.05);
  EXPECT_GT(std::abs(plain.values(plain_line)[1] - 1), 1);
  EXPECT_EQ(last, summary.iterations);
  EXPECT_EQ(calls, summary.iterations);
  EXPECT_NEAR(summary.final_cost, cost_of(graduated), 1e-12);
  options.graduation.factor = 0.5;
  EXPECT_THROW(minimize(graduated, context, options), InputError);
}

TEST(Callbacks, SeeTheIterateAndTheTimeLimitEnds) {
  BlockSet line;
  Problem problem = line_with_outliers(line);
  Context context(interp());
  Options options;
  options.update_values = true;
  std::vector<double> seen;
  options.callback = [&](const Iteration&) {
    seen.push_back(problem.values(line)[1]);
    return seen.size() < 3;
  };
  const Summary summary = minimize(problem, context, options);
  EXPECT_EQ(summary.termination, Termination::stopped);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_NE(seen[0], 30);
  EXPECT_EQ(seen[2], problem.values(line)[1]);
  Options limited;
  limited.time_limit = 1;
  double seconds = 0;
  limited.clock = [&] { return seconds += 1; };  // a second passes before the first iteration
  const Summary none = minimize(problem, context, limited);
  EXPECT_EQ(none.termination, Termination::time_limit);
  EXPECT_EQ(none.iterations, 0);
  limited.time_limit = -1;
  EXPECT_THROW(minimize(problem, context, limited), InputError);
}

TEST(Failures, NameTheInstanceWhoseDerivativesAreNotFinite) {
  Problem problem;
  const BlockSet set = problem.add_blocks("x", euclidean(1), std::vector<double>{1, 0});
  const TermType root{
      "root", {1}, 1, [](const TermArguments& a) { return std::vector<Value>{sqrt(a.x(0)) - a.data(0)}; }};
  problem.add_terms(root, {set}, std::vector<int32_t>{0}, std::vector<double>{1});
  problem.add_terms(root, {set}, std::vector<int32_t>{0, 1}, std::vector<double>{1, 2});
  Context context(interp());
  const Summary summary = minimize(problem, context);
  EXPECT_EQ(summary.termination, Termination::failure);
  EXPECT_EQ(summary.message, "the derivatives of instance 1 of root are not finite");
}

TEST(Manifolds, WhosePlusOfZeroIsAnotherPointAreRefused) {
  Problem problem;
  const Manifold wrong{"wrong", 2, 2, [](std::span<const Value> x, std::span<const Value> d) {
                         return std::vector<Value>{x[0] + d[0] + 0.5, x[1] + d[1]};
                       }};
  try {
    problem.add_blocks("w", wrong, std::vector<double>{1, 2});
    FAIL();
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("plus(x, 0)"), std::string::npos) << e.what();
  }
  problem.add_blocks("angles", so2(), std::vector<double>{4.0});  // wrapped: the same angle
}

}  // namespace
}  // namespace lockstep::solve::test
