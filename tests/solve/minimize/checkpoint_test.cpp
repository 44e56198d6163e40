// Stop and resume: the same iterates as without the break; files of others and damaged ones are refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lockstep/error.hpp"
#include "solve/minimize/problems.hpp"

namespace lockstep::solve {
namespace {

using test::Instance;

class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("lockstep_checkpoint_" +
               std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) +
               std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    file_ = folder_ / "state.ckpt";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Options options(Method method) const {
    Options out;
    out.method = method;
    out.max_iterations = 60;
    out.learning_rate = 0.02;
    out.checkpoint = file_.string();
    return out;
  }
  Context context_{ContextOptions{.device = "cpu"}};
  std::filesystem::path folder_, file_;
};

TEST_F(Checkpoint, AResumedRunGivesTheSameIterates) {
  for (const Method method : {Method::lm, Method::gn, Method::dogleg, Method::newton, Method::lbfgs,
                              Method::sgd, Method::adam, Method::adamw}) {
    SCOPED_TRACE(name(method));
    std::filesystem::remove(file_);
    Options whole = options(method);
    whole.checkpoint.clear();
    whole.momentum = 0.5, whole.weight_decay = 0.01;
    Instance uninterrupted = test::net(5);
    const Summary expected = minimize(uninterrupted.problem, context_, whole);
    ASSERT_GT(expected.iterations, 3);

    Options broken = options(method);
    broken.momentum = 0.5, broken.weight_decay = 0.01;
    Instance resumed = test::net(5);
    int left = 2;
    broken.callback = [&](const Iteration&) { return --left > 0; };
    EXPECT_EQ(minimize(resumed.problem, context_, broken).termination, Termination::stopped);
    std::vector<int> seen;
    broken.callback = [&](const Iteration& row) {
      seen.push_back(row.iteration);
      return true;
    };
    Instance fresh = test::net(5);  // another process would build the problem again
    const Summary summary = minimize(fresh.problem, context_, broken);
    EXPECT_EQ(summary.iterations, expected.iterations);
    EXPECT_EQ(summary.termination, expected.termination);
    EXPECT_EQ(summary.initial_cost, expected.initial_cost);
    EXPECT_EQ(summary.final_cost, expected.final_cost);
    ASSERT_EQ(summary.trace.size(), expected.trace.size());
    for (size_t k = 0; k < expected.trace.size(); ++k)
      ASSERT_EQ(summary.trace[k].cost, expected.trace[k].cost) << k;
    EXPECT_EQ(seen.front(), 3);
    for (size_t k = 0; k < uninterrupted.problem.values(uninterrupted.set).size(); ++k)
      ASSERT_EQ(fresh.problem.values(fresh.set)[k], uninterrupted.problem.values(uninterrupted.set)[k]);
  }
}

TEST_F(Checkpoint, RefusesAnotherStartAndNamesWhatDiffers) {
  Instance first = test::rosenbrock();
  minimize(first.problem, context_, options(Method::lm));
  const auto refusal = [&](auto change, Method method = Method::lm) {
    Instance other = test::rosenbrock();
    change(other);
    try {
      minimize(other.problem, context_, options(method));
    } catch (const InputError& e) { return e.problem(); }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal([](Instance& i) { i.problem.values(i.set)[0] = 50; }), "checkpoint of another start");
  EXPECT_EQ(refusal([](Instance& i) { i.problem.bound(i.set, 0, 0, -9, 9); }),
            "checkpoint of other fixed numbers or bounds");
  EXPECT_EQ(refusal([](Instance& i) { i.problem.values(i.set)[0] = 50; }, Method::gn),
            "checkpoint of another method, another start");
}

TEST_F(Checkpoint, AnEndedRunIsTakenOverAndAnUnfinishedOneGoesOn) {
  Options few = options(Method::lm);
  few.max_iterations = 3;
  Instance short_run = test::rosenbrock();
  EXPECT_EQ(minimize(short_run.problem, context_, few).termination, Termination::max_iterations);
  Instance whole = test::rosenbrock();
  const Summary first = minimize(whole.problem, context_, options(Method::lm));
  EXPECT_TRUE(converged(first.termination));
  EXPECT_GT(first.iterations, 3);
  Options counted = options(Method::lm);
  int calls = 0;
  counted.callback = [&](const Iteration&) { return ++calls > 0; };
  Instance again = test::rosenbrock();
  const Summary second = minimize(again.problem, context_, counted);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(second.termination, first.termination);
  EXPECT_EQ(second.final_cost, first.final_cost);
  EXPECT_EQ(second.gradient_max, first.gradient_max);
  EXPECT_EQ(second.iterations, first.iterations);
  EXPECT_EQ(second.linear_iterations, first.linear_iterations);
  for (size_t k = 0; k < 2; ++k)
    EXPECT_EQ(again.problem.values(again.set)[k], whole.problem.values(whole.set)[k]);
}

TEST_F(Checkpoint, RefusesFewerIterationsThanItHas) {
  for (const Method method : {Method::lm, Method::lbfgs}) {
    std::filesystem::remove(file_);
    Options some = options(method);
    some.max_iterations = 4;
    Instance first = test::rosenbrock();
    EXPECT_EQ(minimize(first.problem, context_, some).iterations, 4);
    Instance same = test::rosenbrock();
    EXPECT_EQ(minimize(same.problem, context_, some).iterations, 4);
    some.max_iterations = 3;
    Instance fewer = test::rosenbrock();
    EXPECT_THROW(minimize(fewer.problem, context_, some), InputError);
  }
}

TEST_F(Checkpoint, RefusesAnotherProblemAndADamagedFile) {
  Instance r = test::rosenbrock();
  minimize(r.problem, context_, options(Method::lm));
  ASSERT_TRUE(std::filesystem::exists(file_));
  Instance net = test::net(4);
  EXPECT_THROW(minimize(net.problem, context_, options(Method::lm)), InputError);
  Instance method = test::rosenbrock();
  EXPECT_THROW(minimize(method.problem, context_, options(Method::lbfgs)), InputError);

  const auto size = std::filesystem::file_size(file_);
  std::filesystem::resize_file(file_, size - 3);
  Instance damaged = test::rosenbrock();
  EXPECT_THROW(minimize(damaged.problem, context_, options(Method::lm)), InputError);
  std::ofstream(file_) << "some other text";
  EXPECT_THROW(minimize(damaged.problem, context_, options(Method::lm)), InputError);
}

}  // namespace
}  // namespace lockstep::solve
