// Batches in parts over ranks: the same bits for any number of ranks, sums that are those of the whole batch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "core/refusal.hpp"
#include "forecast/training_fixture.hpp"
#include "lockstep/parallel.hpp"

namespace lockstep::forecast {
namespace {

class Parts : public Training {
 protected:
  TrainResult over(int ranks, const TrainOptions& options) {
    TrainResult lead;
    parallel::run_ranks(ranks, {60}, [&](const parallel::Group& group) {
      Context context(on(host_devices().front()));
      TrainResult own = train(context, options, group);
      if (group.leads()) lead = std::move(own);
    });
    return lead;
  }
  std::string refused_over(int ranks, const TrainOptions& options) {
    return test::refusal([&] { over(ranks, options); });
  }
};

// Of 16 examples in 3 parts one has 6 and two have 5; dropout draws are numbered over the whole batch.
TEST_F(Parts, AddUpToTheGradientOfTheBatch) {
  TrainOptions options{.task = line_task("method = \"sgd\"\nrate = 0.5"), .steps = 4};
  options.precision = Storage::f64;
  const TrainRun whole = over(1, options).runs[0];
  std::vector<double> before;
  for (const int64_t parts : {2, 3, 16}) {
    options.parts = parts;
    const TrainRun cut = over(1, options).runs[0];
    ASSERT_EQ(cut.parameters.size(), whole.parameters.size());
    for (size_t k = 0; k < whole.parameters.size(); ++k)
      EXPECT_NEAR(cut.parameters[k], whole.parameters[k], 1e-13) << parts << " parts, parameter " << k;
    for (size_t k = 1; k < whole.log.size(); ++k)
      EXPECT_NEAR(cut.log[k].train_loss, whole.log[k].train_loss, 1e-13);
    EXPECT_NE(cut.parameters, before) << "sums of other parts are rounded otherwise";
    before = cut.parameters;
  }
}

TEST_F(Parts, RanksGiveTheBitsOfOne) {
  PredictOptions jumps;
  jumps.warm_up = 10, jumps.snapshots = 3, jumps.spacing = 3, jumps.horizons = {5};
  for (const bool predictive : {false, true}) {
    TrainOptions options{.task = line_task(kAdam)};
    options.parts = 5;
    if (predictive) options.policy = predictive_policy(jumps), options.trainer = "predictive";
    const TrainRun one = over(1, options).runs[0];
    EXPECT_EQ(one.jumps > 0, predictive);
    for (const int ranks : {2, 3, 4}) {
      SCOPED_TRACE(fmt::format("{} ranks, predictive {}", ranks, predictive));
      const TrainResult several = over(ranks, options);
      ASSERT_EQ(several.runs.size(), 1u);
      expect_same_run(several.runs[0], one);
      EXPECT_EQ(several.runs[0].jumps, one.jumps);
    }
  }
}

TEST_F(Parts, ARunGoesOnWithAnotherNumberOfRanks) {
  TrainOptions options{.task = line_task(kAdam)};
  options.parts = 4;
  const TrainRun whole = over(1, options).runs[0];
  options.checkpoint = folder_ / "state.npz";
  int64_t resumed = -1;
  for (const auto& [ranks, target] : {std::pair(3, *whole.log[20].val_loss), {1, 0.0}}) {
    options.target_loss = target;  // reached at the evaluation after 20 steps, never
    const TrainRun part = over(ranks, options).runs[0];
    EXPECT_EQ(part.resumed_at, resumed);
    resumed = part.steps;
    EXPECT_EQ(part.steps, ranks == 3 ? 20 : 60);
    EXPECT_EQ(part.reached, ranks == 3);
    if (ranks == 1) expect_same_run(part, whole);
  }
  options.parts = 2, options.target_loss = {};
  const std::string refused = refused_over(2, options);
  EXPECT_NE(refused.find("parts"), std::string::npos) << refused;
}

TEST_F(Parts, SeedsAreDealtOut) {
  TrainOptions options{.task = line_task(kAdam), .seeds = 3};
  const TrainResult one = over(1, options);
  options.folder = folder_ / "out", options.checkpoint = folder_ / "state.npz";
  for (const int ranks : {2, 3}) {
    const TrainResult several = over(ranks, options);
    ASSERT_EQ(several.runs.size(), 3u);
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(several.runs[k].seed, k + 1);
      expect_same_run(several.runs[k], one.runs[k]);
      EXPECT_EQ(several.runs[k].val_loss, one.runs[k].val_loss);
    }
    EXPECT_TRUE(fs::exists(folder_ / "state_seed3.npz"));
    EXPECT_EQ(several.runs[2].resumed_at, ranks == 2 ? -1 : 60) << "a finished seed is taken over";
  }
}

TEST_F(Parts, Refusals) {
  TrainOptions options{.task = line_task(kAdam)};
  EXPECT_EQ(refused_over(2, options),
            "1 part and 1 seeds for 2 ranks [--parts]: expected at least one part of the batches, or one "
            "seed, for each rank");
  options.parts = 2;
  EXPECT_EQ(
      refused_over(3, options),
      "2 parts for 3 ranks [--parts]: expected at least one part of the batches, or one seed, for each rank");
  options.parts = 17;
  EXPECT_NE(refused_over(1, options).find("at most the 16 examples of a batch"), std::string::npos);
  options.parts = 2, options.rate = 1e300;
  EXPECT_NE(refused_over(2, options).find("loss"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::forecast
