// A trainer that jumps in weight space: between training steps it extrapolates the path of the parameters, evaluates
// the jump by forward passes on held-out examples, and reverts unprofitable jumps bit for bit.
//
//   forecast::PredictiveTrainer trainer(trainee, {});
//   for (int k = 0; k < 1000; ++k) trainer.step();
// steps that the jumps gained, before their cost
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

/// A training driven by the trainer: model, optimiser and batches. All results depend on the step number and on the
/// buffers below only, so a resumed run repeats an uninterrupted one.
class Trainee {
 public:
  virtual ~Trainee() = default;
  virtual nn::TrainableModel& model() = 0;
  /// Training step `step`, from 0: gradient of its batch, and the optimiser at `rate_factor` times the scheduled
  /// rate. loss[0] is the loss of the batch before the step. Launches only.
  virtual void launch_step(uint64_t step, double rate_factor, const Buffer& loss) = 0;
  /// loss[0] is the mean loss of a few examples used by no step and no validation; forward only, launches only.
  virtual void launch_held_out(const Buffer& loss) = 0;
  /// Numbers of examples of a held-out loss and of a batch.
  virtual int64_t held_out_examples() const = 0;
  virtual int64_t batch_examples() const = 0;
  /// Adam's running means, or the velocity: (n) each, in the storage of the parameters. May be empty.
  virtual std::vector<Buffer> moments() const = 0;
  /// Numbers that the optimiser keeps on the host, such as Adam's step count for bias correction.
  virtual std::vector<double> numbers() const = 0;
  virtual void restore_numbers(std::span<const double> numbers) = 0;
  /// Clears the moments and the associated numbers.
  virtual void forget_moments() = 0;
};

/// Controls in place of the predicted jump. zero and random run the same algorithm: zero moves nothing, random moves
/// by the same distance in a random direction. rate: no jumps, all steps after the warm-up at another learning rate.
/// ema and lawa: no jumps; an exponential average, or the mean of the last snapshots, is evaluated.
enum class Control : uint8_t { none, zero, random, rate, ema, lawa };
std::span<const Choice<Control>> choices(Control);
std::string_view name(Control control);

/// Effect of an accepted jump on the optimiser's moments.
enum class Moments : uint8_t { keep, decay, reset };
std::span<const Choice<Moments>> choices(Moments);
std::string_view name(Moments moments);

/// Predictor of the next difference of a path. ridge: a linear recursion for each tensor. mlp: one small network for
/// all parameters, in units of the differences of their tensor, fitted at each jump to some of the parameters.
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
  int order = 2;          // differences used to predict the next one, fewer if there are fewer snapshots
  double ridge = 1e-4;    // share of the mean diagonal added to it
  double max_growth = 1;  // limit of the growth of a mode per spacing
  Directions directions = Directions::ridge;
  int64_t network_units = 8;      // of Directions::mlp, 1 to 64
  int64_t network_samples = 512;  // parameters that it is fitted to, at least 8
  // Timing and length of jumps.
  int64_t warm_up = 100;                            // steps before the first snapshot
  int64_t correct = 10;                             // steps between a jump and its evaluation
  std::vector<double> horizons = {10, 20, 40, 80};  // k: steps ahead, one arm of the bandit each
  double exploration = 0.5;                         // alpha of LinUCB
  double growth_of_doubt = 1;  // the corrector's prior weight: how fast old failures are forgotten
  Moments moments = Moments::keep;
  double moment_decay = 0.5;  // factor of Moments::decay
  // Monitor.
  int64_t norm_every = 10;  // steps between gradient norms; 0: never
  int max_rollbacks = 5;    // rollbacks without a stable period between them after which the run fails
  // Controls.
  double rate_factor = 2;   // Control::rate
  double ema_decay = 0.99;  // Control::ema
  uint64_t seed = 0;        // of Control::random
};
void describe(Schema<PredictOptions>& schema);

/// The result of one call of step().
struct StepReport {
  uint64_t step = 0;             // number of the training step
  double loss = 0;               // of its batch
  Phase phase = Phase::warm_up;  // in which the step was taken
  bool searched = false, accepted = false, rolled_back = false;
  bool judged = false;           // the gain of an earlier jump became known
  double horizon = 0, tau = 0;   // of a search: steps ahead, and the best factor
  double before = 0, after = 0;  // of a search: held-out loss without and with the jump
  double gain = 0;               // after an evaluation: gain of the jump in steps, without its cost
};

/// Sums since the start. A gradient step costs 1, a forward pass a third of its share of examples, a fit its
/// multiplications relative to a step of a dense network.
struct Totals {
  uint64_t steps = 0;
  int64_t jumps = 0, accepted = 0, rollbacks = 0, forwards = 0;
  double gain_steps = 0;        // of evaluated jumps
  double overhead_steps = 0;    // cost of fits and searches in gradient steps
  double overhead_seconds = 0;  // wall-clock time of these, of averages, and of the monitor
};

/// The complete state of a run except the data, as arrays by name.
using TrainerState = std::vector<std::pair<std::string, Array>>;

/// Phases: warm-up, full (steps and snapshots), predict (fit and line search, between two steps), correct (steps,
/// then the jump is evaluated), full again. A bandit chooses horizons, or no jump, by the gains of earlier ones.
class PredictiveTrainer {
 public:
  /// Throws InputError for invalid options. The trainee must outlive the trainer.
  PredictiveTrainer(Trainee& trainee, const PredictOptions& options);
  ~PredictiveTrainer();
  PredictiveTrainer(PredictiveTrainer&&) noexcept;

  /// One training step and, if one is due, a jump. Waits for the loss. Throws InputError if the loss is not finite
  /// and no rollback helps.
  StepReport step();
  /// Runs `work` with the averaged parameters of ema and lawa, then restores the others bit for bit.
  void evaluate(const std::function<void()>& work);

  Phase phase() const;
  const Totals& totals() const;
  /// Parameters, moments, snapshots, bandit, monitor, corrector, counters. A restored run continues bit for bit;
  /// restore() throws InputError for a state of another model or other options.
  TrainerState state() const;
  void restore(const TrainerState& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::forecast
