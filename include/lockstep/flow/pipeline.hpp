// Simulates, encodes, learns, rolls out, decodes and draws in one process and on one device; the same from files, as
// `lockstep flow learn` and `rollout`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/flow/codec.hpp"
#include "lockstep/flow/run.hpp"
#include "lockstep/flow/surrogate.hpp"

namespace lockstep::flow {

/// Where the stages run.
enum class Place : uint8_t {
  device,  // all on the context's device
  mixed,   // the simulation on the CPU, the rest on the device
  cpu,
};
std::span<const Choice<Place>> choices(Place);

struct PipelineOptions {
  /// Model, stepping without cfl, precision, initial field, seed, steps, folder, pictures, video. One member.
  RunOptions run;
  int64_t stride = 10;  // steps from a frame to the next; a multiple of them are the steps
  CodecOptions codec;   // the grid is that of the run
  /// v2: bound on the error of the codec's fields at any point, as in encode_fields(); the surrogate learns the
  /// quantised latents. `codec.share` is then not used. Decoder::mean.
  std::optional<double> max_error;
  Decoder decoder = Decoder::mean;
  SurrogateOptions surrogate;
  RolloutMode rollout = RolloutMode::doubling;
  Place place = Place::device;
  /// Whether stages run concurrently where their data allow: encoding during the simulation, decoding and drawing
  /// while the model learns. Affects times only. Default: on CUDA.
  std::optional<bool> overlap;
};

/// Several pipelines: all combinations of sizes, strides, precisions and places, the first outermost.
struct PipelineSweep : PipelineOptions {
  std::vector<int64_t> sizes;         // points along each axis; empty: the grid's
  std::vector<int64_t> strides;       // empty: `stride`
  std::vector<Storage> precisions;    // empty: the run's
  std::vector<Place> places;          // empty: `place`
  std::filesystem::path log_metrics;  // empty: none
};
void describe(Schema<PipelineOptions>& schema);
void describe(Schema<PipelineSweep>& schema);

/// A copy between host and device.
struct Transfer {
  std::string stage, what;
  bool to_device = false;
  int64_t bytes = 0;
  std::string reason;
};
/// A buffer, or the memory of a part, on the device.
struct MemoryUse {
  std::string name, shape;
  int64_t bytes = 0;
  std::string stages;  // that need it
};
/// A stage as counted by the engine. Its seconds are the time from its start to its end, including waits for other
/// stages, so with concurrent stages their sum exceeds the time of the pipeline.
struct StageUse {
  std::string stage, device;
  double seconds = 0;
  int64_t bytes_to_device = 0, bytes_from_device = 0, launches = 0;
};
/// Fields compared with those of the simulation, over the held-out frames.
struct FieldScore {
  double relative_l2 = 0, correlation = 0;       // of all frames; of the last one
  double last_relative_l2 = 0;                   // of the last one
  double energy_drift = 0, enstrophy_drift = 0;  // of the last one, relative
  double anomaly_correlation = 0;  // of the last one: correlation of the differences from climatology
  std::vector<double> l2_by_frame, correlation_by_frame, anomaly_correlation_by_frame;
};
/// All values except the codec's own error and the free baselines are those of rollouts.
struct FieldScores {
  FieldScore surrogate, codec, persistence, climatology;
  FieldScore linear,
      quadratic;         // polynomials through the last two and three training frames; empty where these lack
  FieldScore in_sample;  // through the training frames
  /// Frames in which the surrogate has skill: it is closer to the truth than persistence, climatology, both
  /// polynomials and the zero field, and its anomaly correlation is at least 0.6.
  int64_t horizon = 0;
  double turnover_time = 0;  // 1 / root mean square of the vorticity at the end
};

/// Frames with a bound on their error, as in a file.
struct CodedFrames {
  double bound = 0, max_error = 0;  // requested; found in the held-out frames
  int64_t bytes = 0;                // of all frames
  double bits_per_point = 0;
};

struct PipelineResult {
  Place place = Place::device;
  std::string device;
  BoxGrid grid;
  Storage precision = Storage::f32;
  CodecKind codec = CodecKind::v2;
  Decoder decoder = Decoder::mean;
  SurrogateMethod method = SurrogateMethod::ridge;
  int64_t steps = 0, stride = 1, frames = 0, train_frames = 0, latent_size = 0, state_size = 0;
  double frame_time = 0;  // between frames
  SurrogateScores latents;
  FieldScores fields;
  std::optional<CodedFrames> coded;
  std::vector<StageUse> stages;
  std::vector<Transfer> transfers;
  std::vector<MemoryUse> memory;
  int64_t peak_bytes = 0;
  bool overlapped = false;  // stages ran concurrently
  double seconds = 0;       // of all stages, from the first start to the last end
  std::vector<std::filesystem::path> files;
};

/// Stages "flow.simulate", "flow.encode", "flow.learn", "flow.rollout", "flow.decode", "flow.plot", "flow.video".
/// If a stage falls back to the CPU, the stages before it are repeated there, because their results are on the device
/// only. Throws InputError for invalid options, dt above the limit and a flow that blew up.
PipelineResult run_pipeline(Context& context, const PipelineOptions& options);
struct SweepResult {
  std::vector<PipelineResult> runs;
  std::vector<std::filesystem::path> files;  // metrics.json, report.md, the log's
};
/// Runs pipelines one after the other, each in a separate folder if there are several; all are checked before the
/// first one runs. `fallback`: as in the context.
SweepResult run_sweep(Context& context, const PipelineSweep& sweep, bool fallback = true);
std::string to_json(const SweepResult& result);
/// Throws as run_pipeline() would for invalid options, frames that cannot be learnt and latents that are too long,
/// without running.
void check_pipeline(Context& context, const PipelineOptions& options);

/// The program's JSON of several runs, their report, and the entry of one run in a log of metrics.
std::string to_json(const std::vector<PipelineResult>& runs);
std::string to_markdown(const std::vector<PipelineResult>& runs);
/// `metrics.json` and `report.md` in a folder.
std::vector<std::filesystem::path> write_report(const std::filesystem::path& folder,
                                                const std::vector<PipelineResult>& runs);
/// `pipeline_<time>.json` in a folder, and `summary.json` with a line for each run that was written there.
std::filesystem::path log_metrics(const std::filesystem::path& folder,
                                  const std::vector<PipelineResult>& runs);

struct LearnRunOptions {
  std::filesystem::path input, output;  // Z.npz of `flow encode`; MODEL.npz
  SurrogateOptions surrogate;
  RolloutMode rollout = RolloutMode::doubling;
};
void describe(Schema<LearnRunOptions>& schema);
struct LearnRunResult {
  Surrogate model;
  int64_t frames = 0;
  SurrogateScores latents;
  FieldScores fields;  // compared with decoded latents, so without the error of the codec
  std::vector<std::complex<double>> eigenvalues;
  std::filesystem::path file;
};
LearnRunResult learn_run(Context& context, const LearnRunOptions& options);

struct RolloutRunOptions {
  std::filesystem::path input, output;  // MODEL.npz; Z.npz for `flow decode`
  int64_t steps = 0;
  RolloutMode rollout = RolloutMode::doubling;
};
void describe(Schema<RolloutRunOptions>& schema);
struct RolloutRunResult {
  int64_t steps = 0, latent_size = 0, state_size = 0;
  double seconds = 0, steps_per_second = 0;
  std::string scores;  // JSON of the model's scores, as learn_run found them
  std::filesystem::path file;
};
RolloutRunResult rollout_run(Context& context, const RolloutRunOptions& options);

/// The commands' options: flow.run, flow.encode, flow.decode, flow.learn, flow.rollout, flow.pipeline; and flow.simulation.
std::vector<NamedSchema> schemas();

std::string to_json(const LearnRunResult& result);
std::string to_json(const RolloutRunResult& result);

}  // namespace lockstep::flow
