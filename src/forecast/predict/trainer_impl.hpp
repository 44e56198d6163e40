// The parts of a predictive trainer.
#pragma once

#include <string>
#include <vector>

#include "forecast/predict/jump/jump.hpp"
#include "forecast/predict/policy/bandit.hpp"
#include "forecast/predict/policy/corrector.hpp"
#include "forecast/predict/policy/monitor.hpp"
#include "lockstep/forecast/predict.hpp"

namespace lockstep::forecast {

/// Throws InputError for what is out of range.
void check_options(const PredictOptions& options);
/// Text that determines whether a checkpoint belongs to these options and this model.
std::string settings_of(const PredictOptions& options, nn::TrainableModel& model);

/// Features of a decision, for the bandit and the corrector: 1, share explained, cosine, slope, last reward, age.
inline constexpr int kDecisionFeatures = 6;

/// An accepted jump until it is judged.
struct PendingJump {
  bool open = false;
  int arm = 0;
  double horizon = 0, before = 0, slope = 0, cost = 0;
  double uncorrected = 0, predicted = 0;  // held-out loss when it is judged
  std::vector<double> features = std::vector<double>(kDecisionFeatures, 0.0);
};

/// Parameters, moments and numbers to go back to.
struct Anchor {
  Buffer parameters;
  std::vector<Buffer> moments;
  std::vector<double> numbers;
};

struct PredictiveTrainer::Impl {
  Impl(Trainee& given, const PredictOptions& options);

  bool jumps() const {
    return o.control == Control::none || o.control == Control::zero || o.control == Control::random;
  }
  /// One gradient step as the costs count it.
  double forward_cost() const;
  double held_out();
  /// Steps that a fall of the held-out loss to `after` is worth, without the `walked` ones that were taken.
  double gain_of(double before, double after, double slope, double walked, double horizon) const;

  StepReport step();
  void after_step(StepReport& report, Verdict verdict);
  void snapshot(StepReport& report, Verdict verdict);
  void decide(StepReport& report);
  void judge(StepReport& report);
  void keep_moments_or_not();
  void save_anchor();
  void roll_back(StepReport& report);
  void update_average();
  /// Every number that is kept between steps and is no array, for checkpoints.
  template <class Each>
  void each_counter(Each each) {
    ring_newest = engine.newest(), ring_count = engine.count();
    each(ring_newest), each(ring_count);
    each(totals.steps), each(totals.jumps), each(totals.accepted), each(totals.rollbacks),
        each(totals.forwards);
    each(totals.gain_steps), each(totals.overhead_steps), each(totals.overhead_seconds);
    each(phase), each(since_snapshot), each(left_to_correct), each(quiet), each(averaged);
    each(held_loss), each(held_step), each(slope), each(last_reward), each(rollbacks_in_a_row);
    each(pending.open), each(pending.arm), each(pending.horizon), each(pending.before), each(pending.slope);
    each(pending.cost), each(pending.uncorrected), each(pending.predicted);
  }

  Trainee& trainee;
  PredictOptions o;
  Device device;
  JumpEngine engine;
  LinearBandit bandit;
  DivergenceMonitor monitor;
  ResidualCorrector corrector;
  Buffer loss, average, kept;  // average: of Control::ema; kept: the parameters while others are evaluated
  Anchor anchor;
  PendingJump pending;
  Totals totals;
  Phase phase = Phase::warm_up;
  int64_t since_snapshot = 0, left_to_correct = 0, quiet = 0;  // quiet: steps without decisions that are left
  bool averaged = false;                                       // the average has begun
  double held_loss = 0, held_step = -1;                        // the last held-out loss; -1: none
  double slope = 0;                                            // fall of the held-out loss a step, smoothed
  double last_reward = 0;
  int rollbacks_in_a_row = 0;
  int ring_newest = 0, ring_count = 0;  // the engine's, while a checkpoint is written or read
};

}  // namespace lockstep::forecast
