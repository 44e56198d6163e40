// The online ensemble: gradients and steps against complex steps, what it learns, what it refuses.
#include "lockstep/forecast/observe.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "device/devices.hpp"
#include "forecast/observe/reference.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

RolloutModel small_model(GruForm form, int64_t states) {
  RolloutModel model = random_rollout_model({.hidden = 5,
                                             .members = 2,
                                             .features = 3,
                                             .states = states,
                                             .seed = 4,
                                             .storage = Storage::f64,
                                             .categoricals = 2,
                                             .classes = 3,
                                             .bins = 21});
  std::vector<double> h0, rb;
  for (int k = 0; k < 10; ++k) h0.push_back(0.4 * std::cos(k)), rb.push_back(0.2 * std::sin(2.0 * k));
  model.h0 = Array::of(h0, {2, 5});
  if (form == GruForm::reset_after)
    for (Array& a : model.rb) a = Array::of(rb, {2, 5});
  return model;
}

std::vector<double> features_at(int t) { return {1.5 - 0.1 * t, std::sin(t), std::cos(0.5 * t)}; }
double loss_after(int t) { return 1.4 + 0.3 * std::sin(1.7 * t); }

class ObserveOn : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, ObserveOn, testing::ValuesIn(host_devices()),
                         [](const auto& each) { return test_name(each.param); });

/// Six observations; predictions at each, weights at the end.
void expect_complex_steps(const Device& device, const RolloutModel& model, ObserveOptions options,
                          double bound) {
  options.window = 3, options.decay = 0.7;
  options.optimizer = {.method = optimize::Method::sgd, .schedule = {.rate = 0.2}};
  OnlineEnsemble ensemble(device, model, options);
  reference::OnlineProblem expected = reference::online_problem(model, options);
  for (int t = 0; t < 6; ++t) {
    const std::vector<double> predictions = expected.observe(features_at(t), loss_after(t));
    const Observation seen = ensemble.observe(features_at(t), loss_after(t));
    for (size_t m = 0; m < 2; ++m) ASSERT_NEAR(seen.members[m], predictions[m], bound) << t;
  }
  std::vector<double> weights;
  for (const auto& member : expected.members)
    weights.insert(weights.end(), member.weights.begin(), member.weights.end());
  weights.insert(weights.end(), expected.head.begin(), expected.head.end());
  const std::vector<double> got = device.download<double>(ensemble.parameters());
  ASSERT_EQ(got.size(), weights.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], weights[i], bound) << i;
}

TEST_P(ObserveOn, PredictionsAndWeightsAreThoseOfComplexSteps) {
  const Device& device = test_device(GetParam());
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
    for (const Objective objective : {Objective::logarithmic, Objective::squared})
      for (const int64_t states : {3, 9}) {  // fewer and more than hidden units
        SCOPED_TRACE(std::string(name(form)) + " " + std::string(name(objective)));
        expect_complex_steps(device, small_model(form, states), {.form = form, .objective = objective},
                             1e-13);
      }
}

TEST_P(ObserveOn, TwoHotHeadsLearnAsComplexStepsSay) {
  const Device& device = test_device(GetParam());
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after}) {
    SCOPED_TRACE(std::string(name(form)));
    expect_complex_steps(device, small_model(form, 3), {.form = form, .heads = Heads::two_hot, .seed = 7},
                         2e-13);
  }
}

TEST_P(ObserveOn, PosteriorAndKlTermLearnAsComplexStepsSay) {
  const Device& device = test_device(GetParam());
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
    for (const double free_nats : {0.0, 1e-3, 100.0}) {  // above always, crossed, below always
      SCOPED_TRACE(fmt::format("{} {}", name(form), free_nats));
      expect_complex_steps(
          device, small_model(form, 3),
          {.form = form,
           .heads = Heads::two_hot,
           .seed = 7,
           .posterior = {.on = true, .free_nats = free_nats, .prior_weight = 0.8, .posterior_weight = 0.3}},
          2e-13);
    }
}

TEST(Observe, ThePosteriorBeginsAsThePriorAndLeavesIt) {
  const RolloutModel model = small_model(GruForm::reset_before, 3);
  OnlineEnsemble ensemble(
      Device::open("cpu"), model,
      {.heads = Heads::two_hot, .posterior = {.on = true}, .optimizer = {.schedule = {.rate = 0.1}}});
  EXPECT_NEAR(ensemble.observe(features_at(0), loss_after(0)).divergence, 0, 1e-15);
  EXPECT_GT(ensemble.observe(features_at(1), loss_after(1)).divergence, 1e-6);
}

TEST(Observe, GoesOnAsARolloutFromItsWeightsAndStates) {
  const Device device = Device::open("cpu");
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after}) {
    OnlineEnsemble ensemble(device, small_model(form, 4), {.form = form, .window = 1});
    for (int t = 0; t < 5; ++t) ensemble.observe(features_at(t), loss_after(t));
    Rollout ahead(device, ensemble.model(features_at(5)), {.form = form, .steps = 1});
    ahead.launch();
    const double first = ahead.result().front().final;
    EXPECT_NEAR(first, ensemble.observe(features_at(5), loss_after(5)).predicted, 1e-13 * first);
  }
}

TEST(Observe, LearnsALossThatItsFeaturesTell) {
  const Device device = Device::open("cpu");
  const RolloutModel model = random_rollout_model(
      {.hidden = 16, .members = 3, .features = 2, .states = 4, .categoricals = 2, .classes = 4, .bins = 41});
  for (const Heads heads : {Heads::classic, Heads::two_hot}) {
    SCOPED_TRACE(std::string(name(heads)));
    OnlineEnsemble ensemble(device, model,
                            {.heads = heads, .optimizer = {.schedule = {.rate = 1e-2}, .clip_norm = 5}});
    double before = 0, after = 0;
    for (int t = 0; t < 300; ++t) {
      const double phase = std::sin(0.3 * t), loss = 2 * std::exp(0.5 * phase);
      const std::vector<double> features{1, phase};
      const double error = std::abs(std::log(ensemble.observe(features, loss).predicted / loss));
      (t < 50 ? before : after) += t < 50 || t >= 250 ? error / 50 : 0;
    }
    EXPECT_GT(before, 0.2);                                  // a constant misses by mean |sin| / 2 = 0.32
    EXPECT_LT(after, heads == Heads::classic ? 0.05 : 0.1);  // a sampled state adds noise
  }
}

TEST(Observe, ALogIsLearntFromItsStatesAndTheModelGoesOn) {
  Context context({.device = "cpu"});
  SignalTable table;
  for (int t = 0; t < 60; ++t) table.steps.push_back(t);
  table.values.assign(size_t(kSignals) * 60, 0.5);
  for (int t = 0; t < 60; ++t) {
    table.values[size_t(Signal::step) * 60 + size_t(t)] = t;
    table.values[size_t(Signal::loss) * 60 + size_t(t)] = 0.4 + 2 * std::exp(-0.05 * t);
  }
  const RolloutModel start = random_rollout_model({.hidden = 8, .members = 2, .seed = 3});
  const ObserveRun run = observe_log(context, table, start, {});
  ASSERT_EQ(run.predicted.size(), 59u);
  EXPECT_EQ(run.model.members(), 2);
  EXPECT_FLOAT_EQ(run.model.features.as<float>()[0], float(0.4 + 2 * std::exp(-0.05 * 59)));
  // The last value's error is known; the sum over the later half of the predictions.
  double last = 0;
  for (int t = 30; t < 59; ++t)
    last += std::log((0.4 + 2 * std::exp(-0.05 * t)) / (0.4 + 2 * std::exp(-0.05 * (t + 1)))) / 29;
  EXPECT_NEAR(run.last_value_error, last, 1e-12);
  const auto path = std::filesystem::temp_directory_path() / fmt::format("lockstep-observe-{}.npz", getpid());
  save_rollout_model(run.model, path);
  const RolloutModel again = load_rollout_model(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(std::ranges::equal(again.u[1].as<float>(), run.model.u[1].as<float>()));
  EXPECT_TRUE(std::ranges::equal(again.h0.as<float>(), run.model.h0.as<float>()));
}

TEST(Observe, RefusesWhatCannotBeLearntFrom) {
  const Device device = Device::open("interp");
  const RolloutModel model = small_model(GruForm::reset_before, 3);
  EXPECT_THROW(OnlineEnsemble(device, model, {.window = 0}), InputError);
  EXPECT_THROW(OnlineEnsemble(device, model, {.decay = 1.5}), InputError);
  EXPECT_THROW(OnlineEnsemble(device, model, {.heads = Heads::two_hot, .objective = Objective::squared}),
               InputError);
  EXPECT_THROW(OnlineEnsemble(device, model, {.posterior = {.on = true}}), InputError);
  EXPECT_THROW(
      OnlineEnsemble(device, model, {.heads = Heads::two_hot, .posterior = {.on = true, .free_nats = -1}}),
      InputError);
  EXPECT_NO_THROW(OnlineEnsemble(device, model, {.heads = Heads::two_hot}).observe(features_at(0), -2));
  OnlineEnsemble ensemble(device, model, {});
  const std::vector<double> good = features_at(0), few{1, 2}, bad{1, NAN, 2};
  EXPECT_THROW(ensemble.observe(few, 1), InputError);
  EXPECT_THROW(ensemble.observe(bad, 1), InputError);
  EXPECT_THROW(ensemble.observe(good, 0), InputError);
  EXPECT_THROW(ensemble.observe(good, INFINITY), InputError);
  EXPECT_EQ(ensemble.observations(), 0);
}

}  // namespace
}  // namespace lockstep::forecast
