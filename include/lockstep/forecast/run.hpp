// The commands `lockstep forecast` as functions: they read files, forecast and write files. to_json() returns the JSON of
// the program.
//
//   Context context;
//   forecast::EncodeRunOptions options;
//   options.log.file = "log.csv", options.out = "features.npz";
//   const forecast::EncodeRun run = forecast::run_encode(context, options);
//
// All functions throw InputError for invalid files and options before anything is written.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/forecast/curve.hpp"
#include "lockstep/forecast/observe.hpp"
#include "lockstep/forecast/sweep.hpp"
#include "lockstep/forecast/train.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::forecast {

/// A log (.csv, .jsonl, tfevents) and the column of its loss; empty: the first column with one of the usual names.
struct LoggedLoss {
  std::filesystem::path file;
  std::string column;
};

struct CurveRunOptions {
  LoggedLoss log;
  CurveOptions curve;
  std::filesystem::path out;  // log and prediction (.png); empty: no picture
};
struct CurveRun {
  std::string column;  // the column that was read
  size_t rows = 0;
  CurveForecast forecast;
  std::filesystem::path picture;
  std::vector<StageRecord> host_stages;
};
/// Host stage "forecast.curve".
CurveRun run_curve(const CurveRunOptions& options);

struct EncodeRunOptions {
  LoggedLoss log;
  int64_t history = kMostHistory;
  Storage precision = Storage::f32;
  bool normalised = false;
  std::filesystem::path out;  // .npz with the array "step" and an array for each feature
};
struct EncodeRun {
  std::string column;
  int64_t states = 0;
  std::vector<std::string> features, filled;  // names of missing signals and their replacements
  int64_t history = 0;
  bool normalised = false;
  std::filesystem::path out;
};
/// Stage "forecast.encode".
EncodeRun run_encode(Context& context, const EncodeRunOptions& options);

struct ObserveRunOptions {
  LoggedLoss log;
  std::filesystem::path model;  // file of the initial weights; empty: random ones
  RandomModelOptions random{.hidden = 128, .features = kFeatures};
  ObserveOptions observe;
  int64_t history = kMostHistory;
  std::filesystem::path out;  // file for the model after the last row (.npz)
};
struct LoggedObservations {
  std::string column;
  std::vector<std::string> filled;
  ObserveRun run;
  std::filesystem::path out;
};
/// Stage "forecast.observe".
LoggedObservations run_observe(Context& context, const ObserveRunOptions& options);

struct RolloutRunOptions {
  std::filesystem::path model;        // empty: random weights
  std::optional<RolloutModel> given;  // instead of `model`
  RandomModelOptions random;
  RolloutOptions rollout;
  int64_t batch = 0;           // number of starting points, all with the same features; 0: those of the model
  std::filesystem::path plot;  // members, mean and bands of the first starting point (.png)
};
struct ModelRollout {
  RolloutRun run;
  std::filesystem::path plot;
  std::vector<StageRecord> host_stages;
};
/// Stage "forecast.rollout"; host stages "forecast.model" and "forecast.picture".
ModelRollout run_rollout(Context& context, const RolloutRunOptions& options);

struct SweepRunOptions {
  std::filesystem::path log;  // file with a column of losses for each run
  int64_t synthetic = 0;      // instead of `log`: number of synthetic sweeps
  int64_t runs = 16;          // runs of a synthetic sweep
  uint64_t seed = 1;          // of the first synthetic sweep
  SweepOptions sweep;
  std::filesystem::path checkpoint;  // file of finished fits (.npz); a run resumes from an existing one
};
struct SweepRun {
  std::vector<SweepRow> rows;
  int64_t sweeps = 0;
  int64_t computed = 0, resumed = 0;  // fits that were computed, and fits from the checkpoint
  std::vector<StageRecord> host_stages;
};
/// Host stage "forecast.sweep". Fits are distributed over the ranks. Rank 0 returns the rows, whose bits do not depend on
/// the number of ranks, and writes the checkpoint. Throws InputError if the steps of runs differ.
SweepRun run_sweep(const SweepRunOptions& options, const parallel::Group& group = parallel::Group());

enum class Trainer : uint8_t { plain, predictive };
struct TrainRunOptions {
  TrainOptions train;  // leave `policy` empty: `policy` and `trainer` are set from the members below
  Trainer trainer = Trainer::plain;
  PredictOptions predict;  // of Trainer::predictive
};
TrainResult run_train(Context& context, const TrainRunOptions& options,
                      const parallel::Group& group = parallel::Group());

/// Members of the program's JSON.
std::string to_json(const CurveRun& run);
std::string to_json(const EncodeRun& run);
std::string to_json(const LoggedObservations& run);
std::string to_json(const ModelRollout& run);
std::string to_json(const SweepRun& run);

std::span<const Choice<Trainer>> choices(Trainer);

void describe(Schema<LoggedLoss>& schema);
void describe(Schema<CurveOptions>& schema);
void describe(Schema<CurveRunOptions>& schema);
void describe(Schema<EncodeRunOptions>& schema);
void describe(Schema<RandomModelOptions>& schema);
void describe(Schema<PosteriorTerm>& schema);
void describe(Schema<ObserveOptions>& schema);
void describe(Schema<ObserveRunOptions>& schema);
void describe(Schema<RolloutOptions>& schema);
void describe(Schema<RolloutRunOptions>& schema);
void describe(Schema<SweepRunOptions>& schema);
void describe(Schema<TrainRunOptions>& schema);
/// The options of all commands.
std::vector<NamedSchema> schemas();

}  // namespace lockstep::forecast
