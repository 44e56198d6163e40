// A trainer that jumps in weight space: between training steps it extrapolates the path of the parameters, tries the
// jump by forward passes on held-out examples, and takes it back bit for bit where it does not pay.
//
//   forecast::PredictiveTrainer trainer(trainee, {});
//   for (int k = 0; k < 1000; ++k) trainer.step();
//   trainer.totals().gain_steps;                        // steps that the jumps were worth, before their cost
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/array.hpp"
#include "lockstep/device.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::forecast {

/// A training that the trainer drives: model, optimiser and batches. Everything depends on the number of the step
/// and on the buffers below only, so that a resumed run repeats an uninterrupted one.
class Trainee {
 public:
  virtual ~Trainee() = default;
  virtual nn::TrainableModel& model() = 0;
  /// Training step `step`, from 0: its batch's gradient and the optimiser at `rate_factor` times the scheduled rate.
  /// loss[0] = the batch's loss before the step. Launches only.
  virtual void launch_step(uint64_t step, double rate_factor, const Buffer& loss) = 0;
  /// loss[0] = mean loss of a few examples that no step and no validation sees; forward only, launches only.
  virtual void launch_held_out(const Buffer& loss) = 0;
  /// Examples of a held-out loss and of a step's batch.
  virtual int64_t held_out_examples() const = 0;
  virtual int64_t batch_examples() const = 0;
  /// Adam's running means, or the velocity: (n) each, of the parameters' storage. May be none.
  virtual std::vector<Buffer> moments() const = 0;
  /// Numbers that the optimiser keeps on the host, such as Adam's count for the correction of its bias.
  virtual std::vector<double> numbers() const = 0;
  virtual void restore_numbers(std::span<const double> numbers) = 0;
  /// Clears the moments, and the numbers that belong to them.
  virtual void forget_moments() = 0;
};

/// Controls in place of the predicted jump. zero and random go through all of its steps: zero moves nothing, random
/// moves as far in a random direction. rate: no jumps, all steps after the warm-up at another learning rate. ema and
/// lawa: no jumps; an exponential average, or the mean of the last snapshots, is what is evaluated.
enum class Control : uint8_t { none, zero, random, rate, ema, lawa };
std::span<const Choice<Control>> choices(Control);
std::string_view name(Control control);

/// Effect of an accepted jump on the optimiser's moments.
enum class Moments : uint8_t { keep, decay, reset };
std::span<const Choice<Moments>> choices(Moments);
std::string_view name(Moments moments);

/// How the next difference of a path is predicted. ridge: a linear recursion of each tensor. mlp: one small network for
/// every parameter, in units of its tensor's differences, fitted at each jump to some of the parameters.
enum class Directions : uint8_t { ridge, mlp };
std::span<const Choice<Directions>> choices(Directions);
std::string_view name(Directions directions);

enum class Phase : uint8_t { warm_up, full, predict, correct };
std::string_view name(Phase phase);

struct PredictOptions {
  Control control = Control::none;
  // Snapshots and fit.
  int snapshots = 5;            // K, 2 to 8
  int64_t spacing = 10;         // P: steps between them
  bool bf16_snapshots = false;  // half the memory of f32; parameters in f32 only
  int order = 2;  // differences that the next one is regressed on, fewer where there are fewer snapshots
  double ridge = 1e-4;    // share of the mean diagonal that is added to it
  double max_growth = 1;  // faster growing modes are damped to this factor a spacing
  Directions directions = Directions::ridge;
  int64_t network_units = 8;      // of Directions::mlp, 1 to 64
  int64_t network_samples = 512;  // parameters that it is fitted to, at least 8
  // When and how far.
  int64_t warm_up = 100;                            // steps before the first snapshot
  int64_t correct = 10;                             // steps after a jump until it is judged
  std::vector<double> horizons = {10, 20, 40, 80};  // k: steps ahead, one arm of the bandit each
  double exploration = 0.5;                         // alpha of LinUCB
  double growth_of_doubt = 1;  // the corrector's prior weight: how fast old failures fade
  Moments moments = Moments::keep;
  double moment_decay = 0.5;  // factor of Moments::decay
  // Monitor.
  int64_t norm_every = 10;  // steps between gradient norms; 0: never
  int max_rollbacks = 5;    // without a calm stretch between them; then the run is given up
  // Controls.
  double rate_factor = 2;   // Control::rate
  double ema_decay = 0.99;  // Control::ema
  uint64_t seed = 0;        // of Control::random
};
void describe(Schema<PredictOptions>& schema);

/// The outcome of one call of step().
struct StepReport {
  uint64_t step = 0;             // number of the training step
  double loss = 0;               // of its batch
  Phase phase = Phase::warm_up;  // in which the step was taken
  bool searched = false, accepted = false, rolled_back = false;
  bool judged = false;           // an earlier jump's gain became known
  double horizon = 0, tau = 0;   // of a search: steps ahead, and the factor that was best
  double before = 0, after = 0;  // of a search: held-out loss without and with the jump
  double gain = 0;               // where judged: steps that the jump was worth, without its cost
};

/// Sums since the start. A gradient step has cost 1; a forward pass a third of its share of examples; a fit its
/// multiplications over those of a step of a dense network.
struct Totals {
  uint64_t steps = 0;
  int64_t jumps = 0, accepted = 0, rollbacks = 0, forwards = 0;
  double gain_steps = 0;        // of jumps that were judged
  double overhead_steps = 0;    // gradient steps that fits and searches cost
  double overhead_seconds = 0;  // wall clock of the same, of averages, and of the monitor
};

/// Arrays by name; all that a run is, but the data.
using TrainerState = std::vector<std::pair<std::string, Array>>;

/// Phases: warm-up, full (steps and snapshots), predict (fit and line search, between two steps), correct (steps, then
/// the jump is judged), full again. A bandit chooses horizons, or to leave the jump out, by what earlier ones gained.
class PredictiveTrainer {
 public:
  /// Throws InputError for options out of range. The trainee must outlive the trainer.
  PredictiveTrainer(Trainee& trainee, const PredictOptions& options);
  ~PredictiveTrainer();
  PredictiveTrainer(PredictiveTrainer&&) noexcept;

  /// One training step and, where it is time, a jump. Waits for the loss. Throws InputError where the loss is not finite
  /// and no rollback helps.
  StepReport step();
  /// Runs `work` with the averaged parameters of ema and lawa in place, and puts the others back bit for bit.
  void evaluate(const std::function<void()>& work);

  Phase phase() const;
  const Totals& totals() const;
  /// Parameters, moments, snapshots, bandit, monitor, corrector, counters. A run that is restored goes on as if it had
  /// not stopped, bit for bit; restore() throws InputError for a state of another model or other options.
  TrainerState state() const;
  void restore(const TrainerState& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::forecast
