// Problems in parts over ranks: the same bits for any number of ranks, steps that are those of one part, shares of memory.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <functional>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "solve/case_problems.hpp"
#include "solve/minimize/problems.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

namespace fs = std::filesystem;

using Make = std::function<Problem()>;

Problem scene() { return bundle_problem(7, 60, 4, 3); }
/// Two term types over one set, some of whose blocks are fixed.
Problem springs() { return std::move(test::net(6).problem); }

struct Solved {
  Summary summary;
  std::vector<double> values;
};

/// By rank.
std::vector<Solved> over(int ranks, const Make& make, const Options& options) {
  std::vector<Solved> all(static_cast<size_t>(ranks));
  parallel::run_ranks(ranks, {60}, [&](const parallel::Group& group) {
    Context context(ContextOptions{.device = "cpu"});
    Problem problem = make();
    Options own = options;
    own.ranks = group;
    if (!group.leads()) own.callback = {};
    Solved& solved = all[size_t(group.rank())];
    solved.summary = minimize(problem, context, own);
    solved.values = problem.state().values;
  });
  return all;
}

Options in_parts(int64_t parts, Linear linear) {
  Options options;
  options.parts = parts, options.linear = linear;
  options.max_iterations = 12;
  return options;
}

void expect_same_rows(const std::vector<Iteration>& a, const std::vector<Iteration>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    SCOPED_TRACE(fmt::format("iteration {}", k + 1));
    EXPECT_EQ(a[k].cost, b[k].cost);
    EXPECT_EQ(a[k].gradient_max, b[k].gradient_max);
    EXPECT_EQ(a[k].step_norm, b[k].step_norm);
    EXPECT_EQ(a[k].gain, b[k].gain);
    EXPECT_EQ(a[k].damping, b[k].damping);
    EXPECT_EQ(a[k].linear_iterations, b[k].linear_iterations);
  }
}

std::string refused(int ranks, const Make& make, const Options& options) {
  try {
    over(ranks, make, options);
  } catch (const InputError& e) { return e.what(); }
  return "nothing";
}

TEST(Parts, RanksGiveTheBitsOfOne) {
  struct Kind {
    Make make;
    Linear linear;
    Precision precision;
  };
  for (const Kind& kind : {Kind{scene, Linear::schur_pcg, Precision::f64},
                           {scene, Linear::schur_pcg, Precision::mixed},
                           {scene, Linear::pcg, Precision::f64},
                           {springs, Linear::pcg, Precision::f64}}) {
    Options options = in_parts(5, kind.linear);
    options.precision = kind.precision;
    const Solved one = over(1, kind.make, options)[0];
    ASSERT_GT(one.summary.linear_iterations, one.summary.iterations);
    EXPECT_LT(one.summary.final_cost, 0.9 * one.summary.initial_cost);
    for (const int ranks : {2, 3, 4})
      for (const Solved& rank : over(ranks, kind.make, options)) {
        SCOPED_TRACE(fmt::format("{}, {}, {} ranks", name(kind.linear), name(kind.precision), ranks));
        EXPECT_EQ(rank.values, one.values);
        EXPECT_EQ(rank.summary.initial_cost, one.summary.initial_cost);
        EXPECT_EQ(rank.summary.final_cost, one.summary.final_cost);
        EXPECT_EQ(rank.summary.termination, one.summary.termination);
        expect_same_rows(rank.summary.trace, one.summary.trace);
      }
  }
}

// Steps that are solved for exactly do not depend on how sums are rounded.
TEST(Parts, StepsAreThoseOfADirectSolver) {
  for (const auto& [make, linear] :
       {std::pair<Make, Linear>{scene, Linear::schur_pcg}, {scene, Linear::pcg}, {springs, Linear::pcg}}) {
    Options options = in_parts(1, Linear::dense_cholesky);
    options.max_iterations = 3;
    const Solved direct = over(1, make, options)[0];
    options.linear = linear, options.parts = 6, options.forcing = 1e-13, options.max_linear_iterations = 5000;
    const Solved parts = over(2, make, options)[0];
    ASSERT_EQ(parts.summary.trace.size(), direct.summary.trace.size());
    EXPECT_NEAR(parts.summary.initial_cost, direct.summary.initial_cost, 1e-13 * direct.summary.initial_cost);
    for (size_t k = 0; k < direct.summary.trace.size(); ++k) {
      const Iteration &a = parts.summary.trace[k], &b = direct.summary.trace[k];
      EXPECT_NEAR(a.cost, b.cost, 1e-8 * b.cost) << name(linear) << " " << k;
      EXPECT_NEAR(a.step_norm, b.step_norm, 1e-6 * b.step_norm) << name(linear) << " " << k;
      EXPECT_NEAR(a.gain, b.gain, 1e-5) << name(linear) << " " << k;
    }
  }
}

TEST(Parts, RanksShareInstancesAndTheirMemory) {
  const Options options = in_parts(8, Linear::schur_pcg);
  const auto totals = [](const Solved& rank) {
    std::pair<int64_t, int64_t> total;
    for (const BatchReport& b : rank.summary.batches) total.first += b.instances, total.second += b.bytes;
    return total;
  };
  const auto [instances, bytes] = totals(over(1, scene, options)[0]);
  EXPECT_EQ(instances, 60 * 4);
  int64_t sum = 0;
  for (const Solved& rank : over(4, scene, options)) {
    const auto [own, memory] = totals(rank);
    sum += own;
    EXPECT_NEAR(double(own), 60, 8);
    EXPECT_LT(double(memory), 0.4 * double(bytes));
  }
  EXPECT_EQ(sum, instances);
}

TEST(Parts, AnInterruptedRunGoesOnWithOtherRanks) {
  const fs::path file = fs::temp_directory_path() / fmt::format("lockstep_parts_{}.ckpt", ::getpid());
  Options options = in_parts(4, Linear::schur_pcg);
  options.function_tolerance = options.parameter_tolerance = options.gradient_tolerance = 0;
  const Solved whole = over(1, scene, options)[0];
  ASSERT_GT(whole.summary.iterations, 4);
  options.checkpoint = file.string();
  for (const int ranks : {3, 2, 1}) {
    int left = 1;
    options.callback = [&](const Iteration&) { return ranks == 1 || left-- > 0; };  // of rank 0 alone
    const std::vector<Solved> all = over(ranks, scene, options);
    for (const Solved& rank : all) {
      EXPECT_EQ(rank.summary.termination == Termination::stopped, ranks > 1);
      EXPECT_EQ(rank.values, all[0].values);
    }
    if (ranks > 1) continue;
    EXPECT_EQ(all[0].values, whole.values);
    expect_same_rows(all[0].summary.trace, whole.summary.trace);
  }
  fs::remove(file);
}

TEST(Parts, Refusals) {
  const auto says = [](const std::string& error, const char* text) {
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  says(refused(2, scene, in_parts(1, Linear::schur_pcg)),
       "1 part for 2 ranks [--parts]: expected a part of the residuals");
  says(refused(1, scene, in_parts(2, Linear::cholesky)),
       "pcg or schur-pcg, whose products are sums over residuals");
  Options dogleg = in_parts(2, Linear::pcg);
  dogleg.method = Method::dogleg;
  says(refused(1, scene, dogleg), "lm or gn");
  says(refused(1, scene, in_parts(61, Linear::schur_pcg)), "60 blocks of points for 61 parts");
  says(refused(1, scene, in_parts(241, Linear::pcg)), "has no residuals");
  says(refused(1, springs, in_parts(2, Linear::schur_pcg)), "no set of blocks that can be eliminated");
  std::atomic<int> made{0};
  const Make others = [&made] { return bundle_problem(7, 60, 4, uint64_t(++made)); };
  says(refused(2, others, in_parts(2, Linear::pcg)),
       "problems, options and checkpoints of rank 1 differ from those of rank 0");
}

}  // namespace
}  // namespace lockstep::solve
