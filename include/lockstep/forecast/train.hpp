// Training as in `lockstep forecast train`: task, loop, log and checkpoints, with stages and CPU fallback. A StepPolicy
// makes the steps, so that other trainers can use the same loop, data and log.
//
//   Context context;
//   forecast::TrainOptions options{.task = "mnist", .data = "data", .folder = "out"};
//   const forecast::TrainResult result = forecast::train(context, options);
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/forecast/predict.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/nn/optimizer.hpp"
#include "lockstep/parallel.hpp"

namespace lockstep::forecast {

/// The parts of a training that a policy uses. Buffers and references do not change during its lifetime.
struct TrainingView {
  nn::TrainableModel& model;
  nn::Optimizer& optimizer;
  std::function<nn::Batch(int64_t step)> batch;  // of a step, from 0; the next call overwrites it
  nn::Batch held;  // training examples that are in no batch, for forward-only checks
  int64_t batch_size = 0;
  uint64_t seed = 1;  // of this run
};

/// Makes the training steps. Calls are in the order of steps and from one thread.
class StepPolicy {
 public:
  virtual ~StepPolicy() = default;
  /// Makes step `step`, from 0, and writes its training loss to loss[0], in the storage of the parameters. May wait for
  /// the device.
  virtual void step(TrainingView& view, int64_t step, const Buffer& loss) = 0;
  /// Runs `work`, an evaluation, with the parameters that this trainer returns.
  virtual void evaluate(const std::function<void()>& work) { work(); }
  /// Number of jumps in weight space so far, and of those that were kept.
  virtual int64_t jumps() const { return 0; }
  virtual int64_t accepted() const { return 0; }
  /// Additional figures by name, for the result only.
  virtual std::vector<std::pair<std::string, double>> figures() const { return {}; }
  /// The state, apart from parameters and optimiser, that affects later steps, as host arrays by name, for checkpoints. A
  /// new policy with this state continues bit for bit.
  virtual std::vector<std::pair<std::string, Array>> state() const { return {}; }
  virtual void restore(const std::vector<std::pair<std::string, Array>>&) {}
};
/// Each step computes a gradient and makes a step of the optimiser.
std::unique_ptr<StepPolicy> plain_policy();
using PolicyFactory = std::function<std::unique_ptr<StepPolicy>(const TrainingView& view)>;
/// Each step is one of a PredictiveTrainer, which evaluates jumps on the held-out examples of the view. The view must
/// outlive the policy.
PolicyFactory predictive_policy(const PredictOptions& options);

struct TrainOptions {
  std::string task = "xor";      // xor, mnist, charlm, or a .toml file
  std::string model;             // mnist: mlp or cnn; charlm: transformer or gru; empty: the first of these
  std::filesystem::path data;    // folder of the files of the task, and of the relative paths in a .toml file
  std::filesystem::path folder;  // results; empty: no files
  /// A file that is written at every evaluation; a run resumes from an existing one. File names for further seeds contain
  /// their number.
  std::filesystem::path checkpoint;
  int64_t seeds = 1;
  uint64_t first_seed = 1;
  int64_t steps = 0, batch = 0, evaluate_every = 0;  // 0: those of the task
  /// Number of parts into which each batch is divided. The gradient is the sum over the parts along a tree, so the number
  /// of parts affects the bits.
  int64_t parts = 1;
  std::optional<nn::Schedule::Decay> decay;  // of the learning rate, instead of that of the task
  std::optional<double> rate;                // instead of that of the task
  std::optional<double> target_loss;         // a run ends at the first evaluation at or below it
  Storage precision = Storage::f32;
  std::string trainer = "plain";                                 // name of the policy in logs and checkpoints
  PolicyFactory policy;                                          // empty: plain_policy
  std::function<void(int64_t done, int64_t total)> on_progress;  // over the steps of all seeds
};
void describe(Schema<TrainOptions>& schema);

/// The state after `step` steps.
struct LogRow {
  int64_t step = 0;
  double train_loss = 0;                         // of the batch, before the step; NaN at step 0
  double rate = 0;                               // of the step
  std::optional<double> val_loss, val_accuracy;  // at evaluations
  double seconds = 0;                            // of training and evaluation; at evaluations
  int64_t jumps = 0, accepted = 0;
};

struct TrainRun {
  uint64_t seed = 1;
  int64_t steps = 0, resumed_at = -1;  // step of the checkpoint, or -1
  double val_loss = 0, seconds = 0;
  std::optional<double> accuracy;  // of classes
  bool reached = false;            // the target loss
  int64_t jumps = 0, accepted = 0;
  std::vector<std::pair<std::string, double>> figures;  // StepPolicy::figures() at the end
  std::vector<LogRow> log;
  std::vector<double> parameters;  // at the end
};

struct TrainResult {
  std::string task, model, trainer;
  int64_t parameters = 0, train_examples = 0, validation_examples = 0, batch = 0;
  std::vector<TrainRun> runs;  // by seed
  std::vector<std::filesystem::path> files;
};

/// Stage "forecast.train". Writes log.csv, log.jsonl and loss.png. Throws InputError for unknown tasks, missing or
/// malformed data, a checkpoint with other settings, and a loss that is not finite, with its step.
TrainResult train(Context& context, const TrainOptions& options);
/// The same over ranks. Collective. If there are several parts, the parts of each batch are distributed over the ranks,
/// otherwise the seeds. Results are bit-identical to those of one rank. Rank 0 returns the result and writes all files
/// except the checkpoints of the seeds of other ranks. Throws GroupError for more ranks than parts or seeds, and if a
/// device fails during a batch with parts.
TrainResult train(Context& context, const TrainOptions& options, const parallel::Group& group);

/// The JSON of the program. val_loss, accuracy, steps, seconds, jumps and accepted are means over the runs, which "runs"
/// lists.
std::string to_json(const TrainResult& result);

}  // namespace lockstep::forecast
