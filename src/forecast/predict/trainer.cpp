#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "forecast/predict/trainer_impl.hpp"
#include "lockstep/error.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::forecast {
namespace {

constexpr double kMostReward = 8;      // in spacings
constexpr int64_t kQuietSpacings = 5;  // after a warning or a rollback

double first_number(const Device& device, const Buffer& buffer) {
  return buffer.storage() == Storage::f64 ? device.download<double>(buffer)[0]
                                          : double(device.download<float>(buffer)[0]);
}

double norm_of(const Device& device, const Buffer& x) {
  return x.storage() == Storage::f64 ? primitives::norm<double>(device, x)
                                     : double(primitives::norm<float>(device, x));
}

/// Adds the time until its end to the overhead.
class OverheadClock {
 public:
  explicit OverheadClock(Totals& totals) : totals_(totals), begin_(std::chrono::steady_clock::now()) {}
  ~OverheadClock() {
    totals_.overhead_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  Totals& totals_;
  std::chrono::steady_clock::time_point begin_;
};

JumpOptions jump_options(const PredictOptions& o) {
  return {o.snapshots,  o.bf16_snapshots, o.order,         o.ridge,
          o.max_growth, o.directions,     o.network_units, o.network_samples};
}

}  // namespace

PredictiveTrainer::Impl::Impl(Trainee& given, const PredictOptions& options)
    : trainee(given),
      o(options),
      device(given.model().device()),
      engine(given.model(), jump_options(options)),
      bandit(int(options.horizons.size()) + 1, kDecisionFeatures, options.exploration),
      corrector(kDecisionFeatures, options.growth_of_doubt) {
  check_options(o);
  const Buffer parameters = trainee.model().parameters();
  const Shape shape{parameters.elements()};
  loss = device.allocate(parameters.storage(), {1});
  if (!jumps()) {
    kept = device.allocate(parameters.storage(), shape);
    average = device.allocate(parameters.storage(), shape);
    device.clear(average);
    return;
  }
  anchor.parameters = device.allocate(parameters.storage(), shape);
  for (const Buffer& m : trainee.moments())
    anchor.moments.push_back(device.allocate(m.storage(), {m.elements()}));
  save_anchor();
}

double PredictiveTrainer::Impl::forward_cost() const {
  return double(trainee.held_out_examples()) / (3 * double(std::max<int64_t>(trainee.batch_examples(), 1)));
}

double PredictiveTrainer::Impl::held_out() {
  trainee.launch_held_out(loss);
  ++totals.forwards;
  totals.overhead_steps += forward_cost();
  return first_number(device, loss);
}

double PredictiveTrainer::Impl::gain_of(double before, double after, double fall, double walked,
                                        double horizon) const {
  const double floor = 1e-6 * std::abs(before) + 1e-300;  // on a plateau each step is worth as little
  // A loss that falls by the same share each step, as long as it is positive.
  const double fallen = before > 0 && after > 0 ? before * std::log(before / after) : before - after;
  const double gain = fallen / std::max(fall, floor) - walked;
  return std::isfinite(gain) ? std::clamp(gain, -4 * horizon, 4 * horizon) : -4 * horizon;
}

void PredictiveTrainer::Impl::save_anchor() {
  device.copy(trainee.model().parameters(), anchor.parameters);
  const std::vector<Buffer> moments = trainee.moments();
  for (size_t m = 0; m < moments.size(); ++m) device.copy(moments[m], anchor.moments[m]);
  anchor.numbers = trainee.numbers();
}

void PredictiveTrainer::Impl::roll_back(StepReport& report) {
  if (++rollbacks_in_a_row > o.max_rollbacks)
    throw InputError(fmt::format("the loss diverges again after {} rollbacks", o.max_rollbacks),
                     fmt::format("step {}", report.step), "a lower learning rate");
  device.copy(anchor.parameters, trainee.model().parameters());
  const std::vector<Buffer> moments = trainee.moments();
  for (size_t m = 0; m < moments.size(); ++m) device.copy(anchor.moments[m], moments[m]);
  trainee.restore_numbers(anchor.numbers);
  if (pending.open) {
    bandit.learn(pending.arm, pending.features, -kMostReward);
    last_reward = -kMostReward;
    pending.open = false;
  }
  engine.clear();
  monitor.begin_anew();
  phase = phase == Phase::warm_up ? Phase::warm_up : Phase::full;
  since_snapshot = 0;
  quiet = kQuietSpacings * o.spacing;
  held_step = -1;
  ++totals.rollbacks;
  report.rolled_back = true;
}

void PredictiveTrainer::Impl::keep_moments_or_not() {
  if (o.moments == Moments::reset) trainee.forget_moments();
  if (o.moments == Moments::decay)
    for (const Buffer& m : trainee.moments()) primitives::scale(device, o.moment_decay, m);
}

StepReport PredictiveTrainer::Impl::step() {
  StepReport report{.step = totals.steps, .phase = phase};
  const bool faster = o.control == Control::rate && int64_t(totals.steps) >= o.warm_up;
  trainee.launch_step(totals.steps, faster ? o.rate_factor : 1.0, loss);
  ++totals.steps;
  report.loss = first_number(device, loss);
  const OverheadClock clock(totals);
  if (!jumps()) {
    if (!std::isfinite(report.loss))
      throw InputError(fmt::format("a loss of {}", report.loss), fmt::format("step {}", report.step),
                       "a finite one");
    update_average();
    return report;
  }
  Verdict verdict = monitor.observe_loss(report.loss);
  if (o.norm_every > 0 && int64_t(report.step) % o.norm_every == 0) {
    verdict = std::max(verdict, monitor.observe_norm(norm_of(device, trainee.model().gradient())));
    totals.overhead_steps += 1 / (3 * double(std::max<int64_t>(trainee.batch_examples(), 1)));
  }
  if (monitor.calm() >= 200) rollbacks_in_a_row = 0;
  after_step(report, verdict);
  return report;
}

void PredictiveTrainer::Impl::after_step(StepReport& report, Verdict verdict) {
  if (verdict == Verdict::critical) {
    roll_back(report);
    return;
  }
  if (verdict == Verdict::warning) quiet = kQuietSpacings * o.spacing;
  quiet = std::max<int64_t>(quiet - 1, 0);
  ++since_snapshot;
  if (phase == Phase::correct) {
    if (--left_to_correct > 0) return;
    judge(report);
    if (report.rolled_back) return;
    phase = Phase::full;
    since_snapshot = o.spacing;  // a snapshot at once
  }
  if (phase == Phase::warm_up && int64_t(totals.steps) >= o.warm_up) {
    phase = Phase::full;
    since_snapshot = o.spacing;
    held_loss = held_out();
    held_step = double(totals.steps);
  }
  if (since_snapshot >= o.spacing) snapshot(report, verdict);
}

void PredictiveTrainer::Impl::snapshot(StepReport& report, Verdict verdict) {
  since_snapshot = 0;
  if (verdict == Verdict::calm && std::isfinite(report.loss)) save_anchor();
  if (phase == Phase::warm_up) return;
  engine.push();
  if (held_step < 0) {  // after a rollback
    held_loss = held_out();
    held_step = double(totals.steps);
  }
  if (engine.full() && quiet == 0 && verdict == Verdict::calm) {
    phase = Phase::predict;
    decide(report);
    phase = pending.open ? Phase::correct : Phase::full;
  }
}

void PredictiveTrainer::Impl::decide(StepReport& report) {
  const auto key = uint32_t(o.seed ^ (o.seed >> 32));
  const PathShape shape = engine.fit(uint32_t(totals.steps), key);
  const auto batch = double(std::max<int64_t>(trainee.batch_examples(), 1));
  const auto n = double(std::max<int64_t>(trainee.model().parameters().elements(), 1));
  totals.overhead_steps += fit_cost(o.snapshots, batch) + engine.network_work() / (6 * batch * n);
  const double relative = slope * double(o.spacing) / std::max(std::abs(held_loss), 1e-300);
  const std::vector<double> features{1,
                                     shape.explained,
                                     shape.cosine,
                                     std::clamp(1 + std::log10(std::max(relative, 1e-6)) / 6, 0.0, 1.0),
                                     last_reward / kMostReward,
                                     std::log10(1 + double(totals.steps)) / 6};
  const int arm = bandit.choose(features);
  if (arm == 0) return;
  const double horizon = o.horizons[size_t(arm) - 1], spent = totals.overhead_steps;
  const double walked = double(o.correct);
  PendingJump jump{.arm = arm, .horizon = horizon, .features = features};
  const auto accept = [&](const SearchResult& found) {
    if (double(totals.steps) > held_step) {
      const double now = (held_loss - found.before) / (double(totals.steps) - held_step);
      slope = slope > 0 ? 0.5 * (slope + now) : now;
    }
    jump.before = found.before;
    jump.slope = slope;
    // The loss continues to fall at the same relative rate.
    const double share = std::max(slope, 0.0) / std::max(std::abs(found.before), 1e-300);
    jump.uncorrected = found.after - (1 - std::exp(-share * walked)) * std::abs(found.after);
    jump.predicted = jump.uncorrected + corrector.correction(totals.steps, features) * std::abs(found.before);
    return o.control == Control::zero || gain_of(jump.before, jump.predicted, slope, walked, horizon) > 0;
  };
  const Direction direction = o.control == Control::zero     ? Direction::nowhere
                              : o.control == Control::random ? Direction::random
                                                             : Direction::path;
  const SearchResult found = engine.search(
      horizon / double(o.spacing), direction, uint32_t(totals.steps), key,
      [&](const Buffer& l) { trainee.launch_held_out(l); }, accept);
  totals.forwards += found.forwards;
  totals.overhead_steps += found.forwards * forward_cost() + found.work / (6 * batch);
  ++totals.jumps;
  report.searched = true;
  report.horizon = horizon;
  report.tau = found.tau;
  report.before = found.before;
  report.after = found.after;
  jump.cost = totals.overhead_steps - spent;
  if (found.tau == 0) {
    last_reward = -jump.cost / double(o.spacing);
    bandit.learn(arm, features, last_reward);
    held_loss = found.before;
    held_step = double(totals.steps);
    return;
  }
  ++totals.accepted;
  report.accepted = true;
  keep_moments_or_not();
  engine.clear();  // differences over a jump are no path
  jump.cost += forward_cost();
  jump.open = true;
  pending = jump;
  left_to_correct = o.correct;
}

void PredictiveTrainer::Impl::judge(StepReport& report) {
  const double measured = held_out();
  const double gain = gain_of(pending.before, measured, pending.slope, double(o.correct), pending.horizon);
  last_reward = std::clamp((gain - pending.cost) / double(o.spacing), -kMostReward, kMostReward);
  bandit.learn(pending.arm, pending.features, last_reward);
  corrector.learn(totals.steps, pending.features,
                  (measured - pending.uncorrected) / std::max(std::abs(pending.before), 1e-300));
  pending.open = false;
  totals.gain_steps += gain;
  report.judged = true;
  report.gain = gain;
  held_loss = measured;
  held_step = double(totals.steps);
  const Verdict verdict = monitor.observe_prediction(pending.predicted, measured, pending.before);
  if (verdict == Verdict::critical)
    roll_back(report);
  else if (verdict == Verdict::warning)
    quiet = kQuietSpacings * o.spacing;
}

void PredictiveTrainer::Impl::update_average() {
  if (int64_t(totals.steps) < o.warm_up) return;
  const Buffer parameters = trainee.model().parameters();
  const double batch = double(std::max<int64_t>(trainee.batch_examples(), 1));
  if (o.control == Control::ema) {
    if (averaged)
      primitives::axpby(device, 1 - o.ema_decay, parameters, o.ema_decay, average);
    else
      device.copy(parameters, average);
    averaged = true;
    totals.overhead_steps += 1 / (2 * batch);
  }
  if (o.control == Control::lawa && (!averaged || ++since_snapshot >= o.spacing)) {
    engine.push();
    since_snapshot = 0;
    averaged = true;
  }
}

PredictiveTrainer::PredictiveTrainer(Trainee& trainee, const PredictOptions& options)
    : impl_(std::make_unique<Impl>(trainee, options)) {}
PredictiveTrainer::~PredictiveTrainer() = default;
PredictiveTrainer::PredictiveTrainer(PredictiveTrainer&&) noexcept = default;

StepReport PredictiveTrainer::step() { return impl_->step(); }
Phase PredictiveTrainer::phase() const { return impl_->phase; }
const Totals& PredictiveTrainer::totals() const { return impl_->totals; }

void PredictiveTrainer::evaluate(const std::function<void()>& work) {
  Impl& t = *impl_;
  if (!t.averaged) {
    work();
    return;
  }
  const Buffer parameters = t.trainee.model().parameters();
  {
    const OverheadClock clock(t.totals);
    t.device.copy(parameters, t.kept);
    if (t.o.control == Control::lawa) t.engine.average(t.average);
    t.device.copy(t.average, parameters);
  }
  try {
    work();
  } catch (...) {
    t.device.copy(t.kept, parameters);
    throw;
  }
  t.device.copy(t.kept, parameters);
}

}  // namespace lockstep::forecast
