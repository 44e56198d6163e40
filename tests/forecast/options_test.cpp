// Declarations of forecast's options: what holds of each of them, and the tables of docs/forecast-options.md.
#include <gtest/gtest.h>

#include "core/schema/table.hpp"
#include "core/schema_walk.hpp"
#include "lockstep/forecast/run.hpp"

namespace lockstep::forecast {
namespace {

TEST(ForecastOptions, EveryOptionIsRefusedInThreeVocabularies) {
  test::walk<CurveRunOptions>();
  test::walk<EncodeRunOptions>();
  test::walk<ObserveRunOptions>();
  test::walk<RolloutRunOptions>();
  test::walk<SweepRunOptions>();
  test::walk<TrainRunOptions>();
}

TEST(ForecastOptions, DefaultsPassTheirOwnChecks) {
  for (const NamedSchema& schema : schemas())
    EXPECT_NO_THROW(schema.options->check(schema.options->defaults())) << schema.command;
}

TEST(ForecastOptions, EnumerationsAreComplete) {
  EXPECT_TRUE(test::is_complete<GruForm>() && test::is_complete<Heads>() && test::is_complete<Objective>() &&
              test::is_complete<WeightType>());
  EXPECT_TRUE(test::is_complete<Control>() && test::is_complete<Moments>() &&
              test::is_complete<Directions>() && test::is_complete<Trainer>());
}

/// The error of options by their names, or empty.
template <class Run>
std::string refusal(const std::vector<std::pair<std::string, std::string>>& texts) {
  Run run;
  return test::refusal(run, {"log", "out", "task"}, texts);
}

TEST(ForecastOptions, WeightsOfAFileLeaveThoseOfRandomOnesWithoutEffect) {
  for (const char* option : {"hidden", "members", "features"}) {
    EXPECT_NE(refusal<RolloutRunOptions>({{"model", "m.npz"}, {option, "3"}}), "") << option;
    EXPECT_EQ(refusal<RolloutRunOptions>({{option, "3"}}), "") << option;
  }
  EXPECT_EQ(refusal<RolloutRunOptions>({{"model", "m.npz"}, {"seed", "3"}}),
            "nothing is random [--seed]: expected --heads two-hot, or no model");
  EXPECT_EQ(refusal<RolloutRunOptions>({{"model", "m.npz"}, {"seed", "3"}, {"heads", "two-hot"}}), "");
  EXPECT_NE(refusal<RolloutRunOptions>({{"plot", "p.png"}, {"steps", "0"}}), "");
  RolloutRunOptions given;
  given.given.emplace();
  EXPECT_THROW(schema_of<RolloutRunOptions>().finish(&given, {"hidden"}), OptionError);
}

TEST(ForecastOptions, OneSeedIsOfWeightsAndDraws) {
  RolloutRunOptions rollout;
  ObserveRunOptions observe;
  Given given;
  schema_of<RolloutRunOptions>().set_text(&rollout, "seed", "7", given);
  schema_of<RolloutRunOptions>().finish(&rollout, given);
  EXPECT_EQ(rollout.random.seed, 7u);
  given = {"log", "out"};
  schema_of<ObserveRunOptions>().set_text(&observe, "seed", "8", given);
  schema_of<ObserveRunOptions>().finish(&observe, given);
  EXPECT_EQ(observe.random.seed, 8u);
}

TEST(ForecastOptions, TrainersAndControlsReadSomeOptions) {
  const std::pair<std::string, std::string> predictive{"trainer", "predictive"};
  for (const Option& option : schema_of<PredictOptions>().options()) {
    const OptionList& list = schema_of<TrainRunOptions>();
    TrainRunOptions run;
    Given given{"out", "task"};
    list.set(&run, option.name, test::other_value(option, option.get(&run.predict)), given);
    EXPECT_THROW(list.finish(&run, given), OptionError) << option.name << " with a plain trainer";
  }
  EXPECT_EQ(refusal<TrainRunOptions>({predictive, {"correct", "5"}}), "");
  EXPECT_NE(refusal<TrainRunOptions>({predictive, {"control", "lr"}, {"correct", "5"}}), "");
  EXPECT_EQ(refusal<TrainRunOptions>({predictive, {"control", "lawa"}, {"spacing", "5"}}), "");
  EXPECT_NE(refusal<TrainRunOptions>({predictive, {"control", "ema"}, {"spacing", "5"}}), "");
  EXPECT_NE(refusal<TrainRunOptions>({predictive, {"network_units", "5"}}), "");
  EXPECT_EQ(refusal<TrainRunOptions>({predictive, {"directions", "mlp"}, {"network_units", "5"}}), "");
  EXPECT_NE(refusal<TrainRunOptions>({predictive, {"moment_decay", "0.2"}}), "");
  EXPECT_EQ(refusal<TrainRunOptions>({predictive, {"moments", "decay"}, {"moment_decay", "0.2"}}), "");
  EXPECT_NE(refusal<TrainRunOptions>({{"task", "xor"}, {"data", "d"}}), "");
}

TEST(ForecastOptions, ALogOrSyntheticSweeps) {
  EXPECT_THROW(run_sweep({}), OptionError);
  EXPECT_THROW(run_sweep({.log = "runs.csv", .synthetic = 2}), OptionError);
  EXPECT_NE(refusal<SweepRunOptions>({{"log", "runs.csv"}, {"seed", "2"}}), "");
  EXPECT_EQ(run_sweep({.synthetic = 2, .runs = 4}).sweeps, 2);
}

TEST(ForecastOptions, HorizonsLieWithinAThousandSpacings) {
  TrainRunOptions options{.train = {.task = "xor", .steps = 2}, .trainer = Trainer::predictive};
  options.predict.horizons = {10, 20'000};
  Context context(ContextOptions{.device = "cpu"});
  EXPECT_THROW(run_train(context, options), OptionError);
  options.predict.horizons.clear();
  EXPECT_THROW(run_train(context, options), OptionError);
}

TEST(ForecastOptions, TheTablesAreCurrent) {
  for (const NamedSchema& schema : schemas())
    test::expect_committed(LOCKSTEP_SOURCE_DIR "/docs/forecast-options.md", "options " + schema.command,
                           markdown_table(*schema.options));
}

}  // namespace
}  // namespace lockstep::forecast
