// A trainer that jumps in weight space. Between training steps it extrapolates the path of the parameters, evaluates the
// jump by forward passes on held-out examples, and reverts a jump without gain bit for bit.
//
//   forecast::PredictiveTrainer trainer(trainee, {});
//   for (int k = 0; k < 1000; ++k) trainer.step();
//   trainer.totals().gain_steps;                         // steps gained by the jumps, without their cost
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

/// A training that the trainer drives: model, optimiser and batches. Results must depend on the step number and the state
/// below only, so that a resumed run is bit-identical to an uninterrupted one.
class Trainee {
 public:
  virtual ~Trainee() = default;
  virtual nn::TrainableModel& model() = 0;
  /// Makes training step `step`, from 0: the gradient of its batch, and a step of the optimiser at `rate_factor` times the
  /// scheduled rate. Sets loss[0] to the loss of the batch before the step. Launches only.
  virtual void launch_step(uint64_t step, double rate_factor, const Buffer& loss) = 0;
  /// Sets loss[0] to the mean loss of a few examples that neither steps nor validation use. Forward only, launches only.
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

/// Experimental controls, which replace the predicted jump. zero: the same algorithm with jumps of length zero. random:
/// jumps of the same length in a random direction. rate: no jumps; all steps after the warm-up have another learning
/// rate. ema, lawa: no jumps; an exponential moving average of the parameters (ema) or the mean of the last snapshots
/// (lawa) is evaluated.
enum class Control : uint8_t { none, zero, random, rate, ema, lawa };
std::span<const Choice<Control>> choices(Control);
std::string_view name(Control control);

/// Effect of an accepted jump on the optimiser's moments.
enum class Moments : uint8_t { keep, decay, reset };
std::span<const Choice<Moments>> choices(Moments);
std::string_view name(Moments moments);

/// Predictor of the next difference of the path. ridge: a linear recurrence for each tensor. mlp: one small network for
/// all parameters, in units of the differences of their tensor; it is fitted at each jump to a sample of the parameters.
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
  int order = 2;  // number of differences used to predict the next one; fewer if there are fewer snapshots
  double ridge = 1e-4;    // added to the diagonal of the normal equations, relative to its mean
  double max_growth = 1;  // largest growth factor of a mode per spacing
  Directions directions = Directions::ridge;
  int64_t network_units = 8;      // of Directions::mlp, 1 to 64
  int64_t network_samples = 512;  // number of parameters in the sample, at least 8
  // Timing and length of jumps.
  int64_t warm_up = 100;                            // steps before the first snapshot
  int64_t correct = 10;                             // steps between a jump and its evaluation
  std::vector<double> horizons = {10, 20, 40, 80};  // lengths of jumps in steps; each is an arm of the bandit
  double exploration = 0.5;                         // alpha of LinUCB (Li et al. 2010)
  double growth_of_doubt =
      1;  // prior weight of "no correction" in the corrector: if it is larger, old failures fade faster
  Moments moments = Moments::keep;
  double moment_decay = 0.5;  // factor of Moments::decay
  // Monitor.
  int64_t norm_every = 10;  // steps between gradient norms; 0: never
  int max_rollbacks = 5;    // the run fails after this many rollbacks without a stable period between them
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
  bool judged = false;           // an earlier jump was evaluated
  double horizon = 0, tau = 0;   // after a search: length of the jump in steps, and the best factor for it
  double before = 0, after = 0;  // after a search: held-out loss without and with the jump
  double gain = 0;               // after an evaluation: gain of the jump in steps, without its cost
};

/// Sums since the start. Costs are in units of a gradient step: a forward pass costs a third of its number of examples
/// relative to a batch, and a fit its multiplications relative to those of a step of a dense network.
struct Totals {
  uint64_t steps = 0;
  int64_t jumps = 0, accepted = 0, rollbacks = 0, forwards = 0;
  double gain_steps = 0;        // of evaluated jumps
  double overhead_steps = 0;    // cost of fits and searches in gradient steps
  double overhead_seconds = 0;  // wall-clock time of fits, searches, averages and the monitor
};

/// The complete state of a run except the data, as arrays by name.
using TrainerState = std::vector<std::pair<std::string, Array>>;

/// The phases are warm-up, full (steps and snapshots), predict (fit and line search between two steps), correct (steps,
/// after which the jump is evaluated), and full again. A bandit chooses the horizon, or no jump, from the gains of
/// earlier jumps.
class PredictiveTrainer {
 public:
  /// Throws InputError for invalid options. The trainee must outlive the trainer.
  PredictiveTrainer(Trainee& trainee, const PredictOptions& options);
  ~PredictiveTrainer();
  PredictiveTrainer(PredictiveTrainer&&) noexcept;

  /// One training step and, if one is due, a jump. Waits for the loss. Throws InputError if the loss is not finite
  /// and no rollback helps.
  StepReport step();
  /// Runs `work`, an evaluation. Control::ema and lawa: with the averaged parameters, after which the parameters are
  /// restored bit for bit.
  void evaluate(const std::function<void()>& work);

  Phase phase() const;
  const Totals& totals() const;
  /// The state: parameters, moments, snapshots, bandit, monitor, corrector and counters. A restored run continues bit for
  /// bit. restore() throws InputError for a state of another model or of other options.
  TrainerState state() const;
  void restore(const TrainerState& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::forecast
