// Training on this engine, as `lockstep forecast train` does it: task, loop, log, checkpoints; stages and CPU fallback
// inside. What a step does is a StepPolicy, so that other trainers run in the same loop, on the same data, with the
// same log.
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

/// A training as a policy sees it. Buffers and references stay the same ones for its life.
struct TrainingView {
  nn::TrainableModel& model;
  nn::Optimizer& optimizer;
  std::function<nn::Batch(int64_t step)> batch;  // of a step, 0 for the first; the next call overwrites it
  nn::Batch held;  // examples of the training data that no training batch has, for forward-only checks
  int64_t batch_size = 0;
  uint64_t seed = 1;  // of this run
};

/// The way in which a step of training is made. Calls come in the order of steps, from one thread.
class StepPolicy {
 public:
  virtual ~StepPolicy() = default;
  /// Does step `step` (0 for the first) and writes its training loss to loss[0], of the parameters' storage. May wait for
  /// the device.
  virtual void step(TrainingView& view, int64_t step, const Buffer& loss) = 0;
  /// Runs `work`, which evaluates, with the parameters that this trainer would hand out.
  virtual void evaluate(const std::function<void()>& work) { work(); }
  /// Jumps in weight space that were tried and kept so far.
  virtual int64_t jumps() const { return 0; }
  virtual int64_t accepted() const { return 0; }
  /// More of what it did so far, by name; for the result only.
  virtual std::vector<std::pair<std::string, double>> figures() const { return {}; }
  /// All state besides parameters and optimiser that affects further steps, as host arrays by name, for checkpoints; a new
  /// policy with this state continues bit for bit.
  virtual std::vector<std::pair<std::string, Array>> state() const { return {}; }
  virtual void restore(const std::vector<std::pair<std::string, Array>>&) {}
};
/// A gradient and an optimiser's step.
std::unique_ptr<StepPolicy> plain_policy();
using PolicyFactory = std::function<std::unique_ptr<StepPolicy>(const TrainingView& view)>;
/// Steps of a PredictiveTrainer, which checks its jumps on the view's held examples; the view must outlive them.
PolicyFactory predictive_policy(const PredictOptions& options);

struct TrainOptions {
  std::string task = "xor";      // xor, mnist, charlm, or a .toml file
  std::string model;             // mnist: mlp or cnn; charlm: transformer or gru; empty: the first
  std::filesystem::path data;    // folder of the task's files, and of a .toml file's relative paths
  std::filesystem::path folder;  // results; empty: no files
  /// Written at every evaluation; a run that finds one goes on from there. Further seeds add their number to the name.
  std::filesystem::path checkpoint;
  int64_t seeds = 1;
  uint64_t first_seed = 1;
  int64_t steps = 0, batch = 0, evaluate_every = 0;  // 0: the task's
  /// Parts that each batch is cut into; the gradient is the sum over them, along a tree. Decides on the bits.
  int64_t parts = 1;
  std::optional<nn::Schedule::Decay> decay;  // of the learning rate, instead of the task's
  std::optional<double> rate;                // instead of the task's
  std::optional<double> target_loss;         // a run ends at the first evaluation at or below it
  Storage precision = Storage::f32;
  std::string trainer = "plain";                                 // name of `policy` in logs and checkpoints
  PolicyFactory policy;                                          // empty: plain_policy
  std::function<void(int64_t done, int64_t total)> on_progress;  // steps of all seeds
};
void describe(Schema<TrainOptions>& schema);

/// After `step` steps.
struct LogRow {
  int64_t step = 0;
  double train_loss = 0;                         // of the batch, before the step; NaN at step 0
  double rate = 0;                               // of the step
  std::optional<double> val_loss, val_accuracy;  // where it was evaluated
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

/// Stage "forecast.train". Writes log.csv, log.jsonl and loss.png. Throws InputError for unknown tasks, absent or malformed
/// data, a checkpoint of other settings, and a loss that is not finite, named with its step.
TrainResult train(Context& context, const TrainOptions& options);
/// The same over ranks, collectively: with parts the ranks share the parts of each batch, else the seeds are dealt out. The
/// bits are those of one rank. Rank 0 has the result and writes all files but the checkpoints of other ranks' seeds. Throws
/// GroupError for more ranks than parts or seeds, and where a device fails amid the parts of a batch.
TrainResult train(Context& context, const TrainOptions& options, const parallel::Group& group);

/// Members of the program's JSON, in one object: val_loss, accuracy, steps, seconds, jumps and accepted are means over
/// the runs, which are listed in "runs".
std::string to_json(const TrainResult& result);

}  // namespace lockstep::forecast
