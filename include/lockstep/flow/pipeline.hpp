// Simulates, encodes, learns, rolls out, decodes and draws in one process and on one device. Learning and rolling out
// are also available from files, as in `lockstep flow learn` and `flow rollout`.
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

/// The devices of the stages.
enum class Place : uint8_t {
  device,  // all on the context's device
  mixed,   // the simulation on the CPU, the rest on the device
  cpu,
};
std::span<const Choice<Place>> choices(Place);

struct PipelineOptions {
  /// Uses model, stepping without cfl, precision, initial field, seed, steps, folder, pictures and video. One member.
  RunOptions run;
  int64_t stride = 10;  // steps from a frame to the next; must divide the number of steps
  CodecOptions codec;   // the grid is that of the run
  /// v2: bound on the error of the codec's fields at any point, as in encode_fields(); the surrogate learns the
  /// quantised latents. `codec.share` is then not used. Decoder::mean.
  std::optional<double> max_error;
  Decoder decoder = Decoder::mean;
  SurrogateOptions surrogate;
  RolloutMode rollout = RolloutMode::doubling;
  Place place = Place::device;
  /// Whether stages run concurrently: encoding during the simulation, decoding and drawing while the model learns. Affects
  /// times only. Default: true on CUDA.
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
/// Memory on the device: of a buffer, or of a part of the pipeline.
struct MemoryUse {
  std::string name, shape;
  int64_t bytes = 0;
  std::string stages;  // stages that use it
};
/// A stage as counted by the engine. `seconds` is the time from its start to its end, including waits for other stages.
/// With concurrent stages, the sum of these times exceeds the time of the pipeline.
struct StageUse {
  std::string stage, device;
  double seconds = 0;
  int64_t bytes_to_device = 0, bytes_from_device = 0, launches = 0;
};
/// Fields compared with those of the simulation, over the held-out frames.
struct FieldScore {
  double relative_l2 = 0;                        // over all frames
  double correlation = 0;                        // of the last frame
  double last_relative_l2 = 0;                   // of the last frame
  double energy_drift = 0, enstrophy_drift = 0;  // of the last frame, relative
  double anomaly_correlation = 0;  // of the last frame: correlation of the differences from climatology
  std::vector<double> l2_by_frame, correlation_by_frame, anomaly_correlation_by_frame;
};
/// Scores of the rollout of the surrogate, of the codec alone, and of baselines.
struct FieldScores {
  FieldScore surrogate, codec, persistence, climatology;
  FieldScore linear,
      quadratic;         // polynomials through the last 2 and 3 training frames; empty if there are fewer
  FieldScore in_sample;  // rollout of the surrogate through the training frames
  /// Number of first frames in which the surrogate has skill: it is closer to the truth than persistence, climatology,
  /// both polynomials and the zero field, and its anomaly correlation is at least 0.6.
  int64_t horizon = 0;
  double turnover_time = 0;  // 1 / root mean square of the vorticity at the end
};

/// Frames with a bound on their error, as in a file.
struct CodedFrames {
  double bound = 0;      // requested
  double max_error = 0;  // largest error in the held-out frames
  int64_t bytes = 0;     // of all frames
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
  double frame_time = 0;  // simulated time between frames
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
/// If a stage falls back to the CPU, earlier stages are repeated there, because their results are on the device only.
/// Throws InputError for invalid options, a dt above the stability limit and a flow that blows up.
PipelineResult run_pipeline(Context& context, const PipelineOptions& options);
struct SweepResult {
  std::vector<PipelineResult> runs;
  std::vector<std::filesystem::path> files;  // metrics.json, report.md, and those of log_metrics()
};
/// Runs pipelines one after the other, each in its own folder if there are several. All are checked before the first one
/// runs. `fallback`: that of the context. Throws as run_pipeline().
SweepResult run_sweep(Context& context, const PipelineSweep& sweep, bool fallback = true);
std::string to_json(const SweepResult& result);
/// Checks a pipeline without running it. Throws as run_pipeline() for invalid options, too few frames to learn from and
/// latents that are too long.
void check_pipeline(Context& context, const PipelineOptions& options);

/// The JSON of the program for several runs, and their report.
std::string to_json(const std::vector<PipelineResult>& runs);
std::string to_markdown(const std::vector<PipelineResult>& runs);
/// Writes `metrics.json` and `report.md` to a folder and returns their paths.
std::vector<std::filesystem::path> write_report(const std::filesystem::path& folder,
                                                const std::vector<PipelineResult>& runs);
/// Writes `pipeline_<time>.json` to a folder and returns its path. Updates `summary.json`, which has a line for each run
/// in the folder.
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
  std::string scores;  // JSON of the scores of the model, as computed by learn_run()
  std::filesystem::path file;
};
RolloutRunResult rollout_run(Context& context, const RolloutRunOptions& options);

/// The options of the commands flow.run, flow.encode, flow.decode, flow.learn, flow.rollout and flow.pipeline, and of
/// flow.simulation.
std::vector<NamedSchema> schemas();

std::string to_json(const LearnRunResult& result);
std::string to_json(const RolloutRunResult& result);

}  // namespace lockstep::flow
