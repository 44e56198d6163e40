// Changes of a problem by those whom its minimisation or evaluation calls, and calls that fail half way.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "lockstep/solve/marginalize.hpp"
#include "problems.hpp"

namespace lockstep::solve::test {
namespace {

struct Chain {
  Context context{ContextOptions{.device = "cpu", .threads = 2}};
  Problem problem;
  BlockSet points;
  TermSet springs, pins;
  Chain() {
    points = problem.add_blocks("points", euclidean(3), random_numbers(8 * 3, 1));
    springs = problem.add_terms(spring_type(), {points, points}, random_tuples(20, 2, 8, 3),
                                random_numbers(20, 5, 0.1, 1));
    pins = problem.add_terms(TermType{"pin",
                                      {3},
                                      0,
                                      [](const TermArguments& a) {
                                        return std::vector<Value>{a.x(0, 0), a.x(0, 1) - 1.0, a.x(0, 2)};
                                      }},
                             {points}, std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}, {});
  }
  /// Everything that changes a problem.
  std::vector<std::function<void()>> changes() {
    return {[this] { problem.add_blocks("more", euclidean(1), std::vector<double>(1000)); },
            [this] { problem.append_blocks(points, std::vector<double>(3000)); },
            [this] {
              problem.add_terms(spring_type(), {points, points}, std::vector<int32_t>{0, 1},
                                std::vector<double>{1});
            },
            [this] { problem.add_residuals(std::vector<Value>{problem.variable(points, 0) - 1.0}); },
            [this] { problem.set_data(springs, std::vector<double>{2}); },
            [this] { problem.enable(springs, 0, false); },
            [this] { problem.enable(springs, false); },
            [this] { problem.weigh(springs, 2.0); },
            [this] { problem.remove(pins); },
            [this] { problem.erase(pins); },
            [this] { problem.erase(points, std::vector<int64_t>{7}); },
            [this] { problem.fix(points, 1); },
            [this] { problem.fix_coordinates(points, 1, std::vector<int>{0}); },
            [this] { problem.bound(points, 1, 0, -100, 100); },
            [this] { marginalize(problem, context, points, std::vector<int64_t>{7}); },
            [this] { minimize(problem, context); }};
  }
};

TEST(ProblemsInUse, RejectChangesByCallbacks) {
  Chain quiet;
  const Summary expected = minimize(quiet.problem, quiet.context);
  ASSERT_GT(expected.iterations, 2);
  Chain chain;
  for (const auto& change : chain.changes()) {
    Options options;
    options.callback = [&](const Iteration&) {
      EXPECT_THROW(change(), InputError);
      EXPECT_GT(evaluate(chain.problem, chain.context).cost, 0);  // reading is no change
      return true;
    };
    Problem& problem = chain.problem;
    std::ranges::copy(random_numbers(8 * 3, 1), problem.values(chain.points).begin());
    const Summary summary = minimize(problem, chain.context, options);
    EXPECT_EQ(summary.final_cost, expected.final_cost);
    EXPECT_EQ(summary.iterations, expected.iterations);
    EXPECT_EQ(problem.residual_count(), quiet.problem.residual_count());
    EXPECT_EQ(problem.block_count(chain.points), 8);
  }
  // An error that leaves the callback ends the minimisation; the next one works.
  Options options;
  options.callback = [&](const Iteration&) {
    chain.problem.fix(chain.points, 0);
    return true;
  };
  EXPECT_THROW(minimize(chain.problem, chain.context, options), InputError);
  chain.problem.fix(chain.points, 0);
  minimize(chain.problem, chain.context);
}

TEST(ProblemsInUse, RejectChangesByHostTerms) {
  Chain chain;
  std::function<void()> change;
  HostTerm host{.name = "host", .slots = {3}};
  host.residual = [&](const HostInstance& at, std::span<double> r) {
    if (change) change();
    r[0] = at.blocks[0][0] - 0.5;
  };
  const std::vector<std::function<void()>> changes = chain.changes();
  for (size_t k = 0; k + 1 < changes.size(); ++k) {
    change = changes[k];
    EXPECT_THROW(chain.problem.add_terms(host, {chain.points}, std::vector<int32_t>{7}), InputError) << k;
  }
  change = {};
  const TermSet own = chain.problem.add_terms(host, {chain.points}, std::vector<int32_t>{7});
  const int64_t residuals = chain.problem.residual_count();
  for (size_t k = 0; k < changes.size(); ++k) {
    change = changes[k];
    EXPECT_THROW(minimize(chain.problem, chain.context), InputError) << k;
    EXPECT_THROW(evaluate(chain.problem, chain.context), InputError) << k;
    EXPECT_THROW(residuals_by_instance(chain.problem, chain.context), InputError) << k;
    if (k + 1 < changes.size()) {
      EXPECT_THROW(marginalize(chain.problem, chain.context, chain.points, std::vector<int64_t>{7}),
                   InputError)
          << k;
    }
    EXPECT_EQ(chain.problem.residual_count(), residuals) << k;
  }
  change = {};
  const Summary summary = minimize(chain.problem, chain.context);
  EXPECT_LT(summary.final_cost, summary.initial_cost);
  chain.problem.erase(own);
}

TEST(LooseResiduals, OfWhichOneIsWrongAreNotAdded) {
  Chain chain;
  Problem& problem = chain.problem;
  const int64_t residuals = problem.residual_count(), batches = problem.batch_count();
  const double cost = evaluate(problem, chain.context).cost;
  const Value good = problem.variable(chain.points, 0) - 5.0;
  EXPECT_THROW(problem.add_residuals(std::vector<Value>{good, good * good, problem.graph().constant(3)}),
               InputError);
  EXPECT_EQ(problem.residual_count(), residuals);
  EXPECT_EQ(problem.batch_count(), batches);
  EXPECT_EQ(evaluate(problem, chain.context).cost, cost);
  problem.add_residuals(std::vector<Value>{good, good * good});
  EXPECT_EQ(problem.residual_count(), residuals + 2);
}

}  // namespace
}  // namespace lockstep::solve::test
