// The predictive trainer on small problems: gains, controls, rollback, resuming.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "device/devices.hpp"
#include "forecast/small_models.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/predict.hpp"

namespace lockstep::forecast {
namespace {

/// Gradient descent with momentum on a bowl; `noise` moves the target a little in each step, by its number.
class BowlRun : public Trainee {
 public:
  explicit BowlRun(const Device& device, Storage storage = Storage::f64, double rate = 0.3, double noise = 0)
      : bowl(device, storage, {30, 1, 11}, 0.01),
        velocity_(device.allocate(storage, {42})),
        rate_(rate),
        noise_(noise) {
    device.clear(velocity_);
  }
  nn::TrainableModel& model() override { return bowl; }
  void launch_step(uint64_t step, double factor, const Buffer& loss) override {
    ++steps_;
    bowl.launch_gradient({}, loss, step);
    if (noise_ > 0) {
      std::vector<double> g = bowl.read(bowl.gradient());
      for (size_t i = 0; i < g.size(); ++i) g[i] += noise_ * std::sin(double(step * 97 + i * 31));
      bowl.write(g, bowl.gradient());
    }
    primitives::axpby(bowl.device(), 1, bowl.gradient(), 0.5, velocity_);
    primitives::axpy(bowl.device(), -rate_ * factor, velocity_, bowl.parameters());
    if (step == explode_at) bowl.write(std::vector<double>(42, 1e30), bowl.parameters());
    if (step == poison_at) bowl.write(std::vector<double>(42, NAN), bowl.parameters());
  }
  void launch_held_out(const Buffer& loss) override { bowl.launch_loss({}, loss); }
  int64_t held_out_examples() const override { return batch / 2; }
  int64_t batch_examples() const override { return batch; }
  std::vector<Buffer> moments() const override { return {velocity_}; }
  std::vector<double> numbers() const override { return {double(steps_)}; }
  void restore_numbers(std::span<const double> n) override { steps_ = int64_t(n[0]); }
  void forget_moments() override { bowl.device().clear(velocity_); }

  double loss() {
    const Buffer b = bowl.device().allocate(bowl.parameters().storage(), {1});
    bowl.launch_loss({}, b);
    return bowl.read(b)[0];
  }

  QuadraticBowl bowl;
  int64_t batch = 32;
  uint64_t explode_at = ~0ull, poison_at = ~0ull;

 private:
  Buffer velocity_;
  double rate_, noise_;
  int64_t steps_ = 0;
};

PredictOptions quick() {
  return {.snapshots = 5,
          .spacing = 4,
          .order = 3,
          .ridge = 1e-8,
          .warm_up = 20,
          .correct = 4,
          .horizons = {8, 16, 32}};
}

class Predict : public testing::TestWithParam<std::string> {
 protected:
  const Device& device() const { return test_device(GetParam()); }
};

/// Steps until the loss is below `target`, at most 1000.
int steps_to(BowlRun& run, PredictiveTrainer& trainer, double target) {
  for (int k = 0; k < 1000; ++k) {
    if (run.loss() < target) return k;
    trainer.step();
  }
  return 1000;
}

TEST_P(Predict, GainsStepsOnAQuadratic) {
  BowlRun plain(device()), jumping(device());
  PredictOptions none = quick();
  none.warm_up = 100000;
  PredictiveTrainer walk(plain, none), jump(jumping, quick());
  const int walked = steps_to(plain, walk, 1e-3), jumped = steps_to(jumping, jump, 1e-3);
  const Totals& totals = jump.totals();
  EXPECT_GT(totals.accepted, 0);
  EXPECT_GT(totals.gain_steps, totals.overhead_steps);
  // All overhead counted, in gradient steps.
  EXPECT_LT(jumped + totals.overhead_steps, 0.8 * walked)
      << walked << " steps without jumps, " << jumped << " with";
  EXPECT_EQ(totals.rollbacks, 0);
  EXPECT_EQ(totals.steps, uint64_t(jumped));
  EXPECT_GT(totals.overhead_seconds, 0);
}

TEST_P(Predict, GainsStepsByTheNetwork) {
  BowlRun plain(device()), jumping(device());
  PredictOptions none = quick(), network = quick();
  none.warm_up = 100000;
  network.directions = Directions::mlp;
  network.network_units = 2;
  jumping.batch = 1024;  // the multiplications of so small a network are few in comparison
  PredictiveTrainer walk(plain, none), jump(jumping, network);
  const int walked = steps_to(plain, walk, 1e-3), jumped = steps_to(jumping, jump, 1e-3);
  const Totals& totals = jump.totals();
  EXPECT_GT(totals.accepted, 0);
  EXPECT_GT(totals.gain_steps, totals.overhead_steps);
  EXPECT_LT(jumped + totals.overhead_steps, 0.8 * walked)
      << walked << " steps without jumps, " << jumped << " with";
}

// The published trainer's jumps changed no parameter, and its success was the share of skipped backward passes.
TEST_P(Predict, ZeroJumpsGainNothingAndTheBanditStopsThem) {
  BowlRun zero(device()), plain(device());
  PredictOptions options = quick();
  options.control = Control::zero;
  PredictOptions none = quick();
  none.warm_up = 100000;
  PredictiveTrainer trainer(zero, options), walk(plain, none);
  int last = 0;
  for (int k = 0; k < 400; ++k) {
    const StepReport r = trainer.step();
    walk.step();
    if (r.searched) {
      last = k;
      EXPECT_EQ(r.before, r.after);
    }
    if (r.judged) { EXPECT_LT(r.gain, 2.5) << k; }
  }
  EXPECT_EQ(zero.bowl.get(), plain.bowl.get());  // no number of the run was touched
  EXPECT_GT(trainer.totals().jumps, 0);
  EXPECT_LT(last, 399);
  EXPECT_GT(trainer.totals().overhead_steps, 0);
}

TEST_P(Predict, PhasesFollowEachOther) {
  BowlRun run(device());
  PredictiveTrainer trainer(run, quick());
  bool corrected = false;
  for (int k = 0; k < 150; ++k) {
    const Phase before = trainer.phase();
    const StepReport r = trainer.step();
    EXPECT_EQ(r.phase, before);
    EXPECT_EQ(r.step, uint64_t(k));
    const Phase after = trainer.phase();
    EXPECT_NE(after, Phase::predict);  // lies between two steps
    EXPECT_EQ(before == Phase::warm_up, k < 20);
    EXPECT_TRUE(!r.searched || before == Phase::full);
    EXPECT_EQ(r.accepted, before == Phase::full && after == Phase::correct);
    EXPECT_EQ(r.judged, before == Phase::correct && after == Phase::full);
    corrected = corrected || r.judged;
  }
  EXPECT_TRUE(corrected);
}

TEST_P(Predict, ControlsDoWhatTheyAreNamed) {
  for (const Control control : {Control::random, Control::rate, Control::ema, Control::lawa}) {
    BowlRun run(device());
    PredictOptions options = quick();
    options.control = control;
    PredictiveTrainer trainer(run, options);
    for (int k = 0; k < 120; ++k) trainer.step();
    const std::vector<double> at = run.bowl.get();
    double inside = -1;
    trainer.evaluate([&] { inside = run.loss(); });
    EXPECT_EQ(run.bowl.get(), at) << name(control);
    if (control == Control::ema || control == Control::lawa)
      EXPECT_NE(inside, run.loss());
    else
      EXPECT_EQ(inside, run.loss());
    EXPECT_EQ(trainer.totals().jumps > 0, control == Control::random);
  }
  BowlRun fast(device()), plain(device(), Storage::f64, 0.6);
  PredictOptions options = quick();
  options.control = Control::rate;
  options.warm_up = 0;
  options.rate_factor = 2;
  PredictiveTrainer doubled(fast, options);
  PredictOptions none = quick();
  none.warm_up = 1000;
  PredictiveTrainer walk(plain, none);
  for (int k = 0; k < 30; ++k) doubled.step(), walk.step();
  EXPECT_EQ(fast.bowl.get(), plain.bowl.get());
}

TEST_P(Predict, AveragesAreThoseOfTheirDefinition) {
  BowlRun run(device());
  PredictOptions options = quick();
  options.control = Control::lawa;
  options.snapshots = 3;
  options.spacing = 2;
  options.warm_up = 4;
  PredictiveTrainer trainer(run, options);
  std::vector<std::vector<double>> path;
  for (int k = 0; k < 11; ++k) {
    trainer.step();
    path.push_back(run.bowl.get());
  }
  trainer.evaluate([&] {
    const std::vector<double> mean = run.bowl.get();
    // Snapshots after 4, 6, 8, 10 steps; the last three count.
    for (size_t i = 0; i < mean.size(); ++i)
      EXPECT_NEAR(mean[i], (path[5][i] + path[7][i] + path[9][i]) / 3, 1e-12);
  });
}

TEST_P(Predict, MomentsAreKeptDecayedOrReset) {
  for (const Moments rule : {Moments::keep, Moments::decay, Moments::reset}) {
    BowlRun run(device());
    PredictOptions options = quick();
    options.moments = rule;
    options.moment_decay = 0.25;
    options.control = Control::zero;
    PredictiveTrainer trainer(run, options);
    BowlRun twin(device());
    PredictOptions none = quick();
    none.warm_up = 100000;
    PredictiveTrainer walk(twin, none);
    StepReport r;
    for (int k = 0; k < 200 && !r.accepted; ++k) r = trainer.step(), walk.step();
    ASSERT_TRUE(r.accepted);
    const std::vector<double> now = run.bowl.read(run.moments()[0]), kept = twin.bowl.read(twin.moments()[0]);
    const double factor = rule == Moments::keep ? 1 : rule == Moments::decay ? 0.25 : 0;
    for (size_t i = 0; i < now.size(); ++i) EXPECT_EQ(now[i], factor * kept[i]) << name(rule);
  }
}

// The published monitor returned a rollback that nobody executed.
TEST_P(Predict, DivergenceIsRolledBack) {
  for (const bool poison : {false, true}) {
    BowlRun run(device(), Storage::f32);
    (poison ? run.poison_at : run.explode_at) = 130;
    PredictiveTrainer trainer(run, quick());
    int rolled = 0;
    double before = 0;
    for (int k = 0; k < 300; ++k) {
      if (k == 130) before = run.loss();
      rolled += trainer.step().rolled_back;
    }
    EXPECT_EQ(rolled, 1);
    EXPECT_EQ(trainer.totals().rollbacks, 1);
    EXPECT_LT(run.loss(), before);
  }
  // A rate at which nothing helps is an error that names the step.
  BowlRun hopeless(device(), Storage::f32, 1e4);
  PredictiveTrainer trainer(hopeless, quick());
  EXPECT_THROW(for (int k = 0; k < 2000; ++k) trainer.step(), InputError);
}

TEST_P(Predict, RefusedJumpsLeaveTheRunAsItWas) {
  // Noise makes the path unpredictable; each refused jump must leave the twin's bits.
  BowlRun run(device(), Storage::f32, 0.1, 5.0), twin(device(), Storage::f32, 0.1, 5.0);
  PredictOptions options = quick(), none = quick();
  options.control = Control::random;
  none.warm_up = 100000;
  PredictiveTrainer trainer(run, options), walk(twin, none);
  int refused = 0;
  for (int k = 0; k < 100; ++k) {
    const StepReport r = trainer.step();
    walk.step();
    if (r.accepted || r.rolled_back) break;
    refused += r.searched;
    ASSERT_EQ(run.bowl.get(), twin.bowl.get());
  }
  EXPECT_GT(refused, 0);
}

TEST_P(Predict, ResumedIsUninterruptedToTheBit) {
  struct Kind {
    Control control;
    Directions directions = Directions::ridge;
  };
  for (const auto [control, directions] : {Kind{Control::none}, Kind{Control::none, Directions::mlp},
                                           Kind{Control::random}, Kind{Control::ema}, Kind{Control::lawa}}) {
    const bool wide = control == Control::random;
    PredictOptions options = quick();
    options.directions = directions;
    options.control = control;
    options.bf16_snapshots = !wide;
    const Storage storage = wide ? Storage::f64 : Storage::f32;
    BowlRun whole(device(), storage, 0.1, 0.05);
    PredictiveTrainer trainer(whole, options);
    std::vector<TrainerState> states;
    const std::vector<int> stops{7, 33, 61, 95};
    for (int k = 0; k < 160; ++k) {
      if (std::find(stops.begin(), stops.end(), k) != stops.end()) states.push_back(trainer.state());
      trainer.step();
    }
    for (size_t s = 0; s < states.size(); ++s) {
      BowlRun part(device(), storage, 0.1, 0.05);
      PredictiveTrainer resumed(part, options);
      resumed.restore(states[s]);
      for (int k = stops[s]; k < 160; ++k) resumed.step();
      const TrainerState a = trainer.state(), b = resumed.state();
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].first, b[i].first);
        if (a[i].first == "counters") continue;  // the overhead's seconds are among them
        ASSERT_EQ(a[i].second.bytes(), b[i].second.bytes()) << a[i].first;
        EXPECT_TRUE(std::ranges::equal(a[i].second.raw(), b[i].second.raw()))
            << a[i].first << " after a stop at " << stops[s] << " with control " << name(control);
      }
      EXPECT_EQ(trainer.totals().jumps, resumed.totals().jumps);
      EXPECT_EQ(trainer.totals().gain_steps, resumed.totals().gain_steps);
    }
  }
}

TEST_P(Predict, StatesOfOthersAreRefused) {
  BowlRun run(device());
  PredictiveTrainer trainer(run, quick());
  PredictOptions other = quick();
  other.spacing = 5;
  PredictiveTrainer wrong(run, other);
  try {
    wrong.restore(trainer.state());
    FAIL();
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("spacing=4"), std::string::npos) << e.what();
  }
  TrainerState state = trainer.state();
  state[2].second = Array::of(std::vector<double>{1});
  EXPECT_THROW(trainer.restore(state), InputError);
  // The newest snapshot, their number, the phase, the arm of a jump: what is out of range is not an index.
  const Array counters = trainer.state()[1].second;
  for (const int64_t at : {0, 1, 10, 21})
    for (const double bad : {-1.0, 1e9, 1e300, std::nan("")}) {
      state = trainer.state();
      state[1].second = counters.copy();
      state[1].second.mutate<double>()[size_t(at)] = bad;
      EXPECT_THROW(trainer.restore(state), InputError) << at << ": " << bad;
    }
  state.resize(1);
  EXPECT_THROW(trainer.restore(state), InputError);
}

TEST_P(Predict, OptionsOutOfRangeAreNamed) {
  BowlRun run(device());
  const auto refused = [&](auto change) {
    PredictOptions o = quick();
    change(o);
    EXPECT_THROW(PredictiveTrainer(run, o), InputError);
  };
  refused([](auto& o) { o.spacing = 0; });
  refused([](auto& o) { o.snapshots = 1; });
  refused([](auto& o) { o.correct = 0; });
  refused([](auto& o) { o.horizons = {}; });
  refused([](auto& o) { o.horizons = {-1}; });
  refused([](auto& o) { o.rate_factor = 0; });
  refused([](auto& o) { o.ema_decay = 1; });
  refused([](auto& o) { o.directions = Directions::mlp, o.snapshots = 2; });
  refused([](auto& o) { o.directions = Directions::mlp, o.network_units = 0; });
  refused([](auto& o) { o.directions = Directions::mlp, o.network_samples = 7; });
}

INSTANTIATE_TEST_SUITE_P(Host, Predict, testing::ValuesIn(host_devices()),
                         [](const auto& device) { return test_name(device.param); });

}  // namespace
}  // namespace lockstep::forecast
