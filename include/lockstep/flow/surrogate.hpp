// Linear models of series of latents, which may be any matrix with one frame per row. They are learnt by ridge regression
// or dynamic mode decomposition, rolled out on a device, and scored on held-out frames.
//
//   const flow::Surrogate model = flow::learn(latents, {.delays = 2});       // latents: (T, D) on the host
//   flow::Rollout rollout(device, model);
//   rollout.start(last_frames);                                              // (delays, D) on the device
//   rollout.run(predicted, flow::RolloutMode::doubling);                     // (steps, D) on the device
//
// Frames are rows, and so are states: next = state . step. Mathematics and sources: docs/flow.md.
#pragma once

#include <complex>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/array.hpp"
#include "lockstep/device.hpp"
#include "lockstep/flow.hpp"

namespace lockstep::flow {

enum class SurrogateMethod : uint8_t {
  ridge,  // singular vectors of all training frames; weights (X'X + lambda I)^-1 X'Y
  dmd,    // singular vectors of all training frames except the last; weights by least squares
};
std::span<const Choice<SurrogateMethod>> choices(SurrogateMethod);

struct SurrogateOptions {
  SurrogateMethod method = SurrogateMethod::ridge;
  /// Share of the frames used for learning, from the first one; the others are held out. Above 0 and below 1.
  double train_share = 0.5;
  int64_t delays = 1;    // frames in a state
  int64_t rank = 0;      // number of singular vectors; 0: as many as contain `share` of the sum of squares
  double share = 1;      // 1: all singular values above rounding
  double lambda = 1e-3;  // of ridge
};

void describe(Schema<SurrogateOptions>& schema);

inline constexpr int64_t kMaxLatent = 1 << 20, kMaxState = 2048;  // most numbers of a latent and of a state

struct Surrogate {
  SurrogateOptions options;
  int64_t latent_size = 0;   // D
  int64_t rank = 0;          // r
  int64_t train_frames = 0;  // number of training frames
  Array basis;               // (r, D) f64, orthonormal rows
  Array step;  // (delays r, delays r) f64: states hold the coordinates of `delays` frames, oldest first
  Array climatology;  // (D) f64, mean of the training frames
  Array last;         // (delays, D) f64, the last training frames

  int64_t state_size() const { return options.delays * rank; }
};

/// Learns from latents (T, D), f32 or f64. Throws InputError for another number of axes, frames that are not finite, D
/// above kMaxLatent, delays times rank above kMaxState, invalid options, and too few frames: at least `delays` + 1 for
/// learning and one held out.
Surrogate learn(const Array& latents, const SurrogateOptions& options = {});
/// A surrogate whose long arrays are on a device. `model` lacks basis, climatology and last frames.
struct LearntOnDevice {
  Surrogate model;
  Buffer basis;        // (D, r): the transpose of Surrogate::basis; f64, or f32 if the device has no f64
  Buffer climatology;  // (1, D)
};
/// The same for latents (T, D) on a device. The device computes the Gram matrices of the frames in f64, with the same
/// bits on every device, and the host reads only these matrices of size frames × frames. Small singular values are
/// computed from the remainder after the larger ones are removed. On WebGPU, which has no f64, and with more than
/// kMaxState training frames, the host computes everything.
LearntOnDevice learn(const Device& device, const Buffer& latents, const SurrogateOptions& options = {});
/// The surrogate that learn() returns for an array.
Surrogate to_host(const Device& device, const LearntOnDevice& learnt, const Buffer& latents);
/// Eigenvalues of `step`, the operator from one frame to the next, in descending order of magnitude.
std::vector<std::complex<double>> eigenvalues(const Surrogate& model);

enum class RolloutMode : uint8_t {
  steps,     // one product per step
  doubling,  // n states times step^n give the next n states: log2(steps) products
};
std::span<const Choice<RolloutMode>> choices(RolloutMode);

/// States of a surrogate on a device. Results are bit-identical on the CPU, the interpreter and CUDA; those of the two
/// modes differ by rounding.
class Rollout {
 public:
  /// `precision`: f32 or f64. Throws UnsupportedError for f64 on a device without it.
  Rollout(const Device& device, const Surrogate& model, Storage precision = Storage::f32);
  Rollout(const Device& device, const LearntOnDevice& learnt, Storage precision = Storage::f32);

  /// Sets the states of one or more members from latents (members * delays, D), in the precision of the rollout: the last
  /// frames of each member, oldest first.
  void start(const Buffer& latents);
  /// Writes the next frames to out (steps * members, D); frame s of member m is row s * members + m. Every call begins at
  /// the last start(). Returns before completion.
  void run(const Buffer& out, RolloutMode mode = RolloutMode::steps);
  /// Writes the frames `steps` after the start to out (members, D). They are computed with the powers step^1, step^2,
  /// step^4 … of the binary digits of `steps`; the powers are cached.
  void jump(int64_t steps, const Buffer& out);

  /// Bytes on the device of operator, basis, states and powers.
  int64_t bytes() const;
  const Device& device() const;
  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// Relative L2 errors of latents, frame by frame: |predicted - true| / |true|.
struct RolloutScore {
  std::vector<double> surrogate, persistence, climatology;
  /// The same over all frames together.
  double surrogate_all = 0, persistence_all = 0, climatology_all = 0;
  /// Steps before the error of the surrogate first reaches that of persistence; 0: already at the first step.
  int64_t horizon = 0;
  bool lost() const { return horizon < int64_t(surrogate.size()); }
};
/// predicted and truth (n, D); start (D), the frame before the first; climatology (D).
RolloutScore score_rollout(const Array& predicted, const Array& truth, const Array& start,
                           const Array& climatology);

/// Scores of a surrogate on the series from which it was learnt: rollouts from the first frames through the training
/// part, and from its end through the held-out part.
struct SurrogateScores {
  RolloutScore in_sample, held_out;
  /// Mean relative L2 error over the frames of a part, each predicted from the true frames before it.
  double one_step_in_sample = 0, one_step_held_out = 0;
  double one_step_persistence = 0;                 // of persistence, over the held-out frames
  Buffer predicted_in_sample, predicted_held_out;  // (n, D), on the device
};
/// Scores latents (T, D), with climatology (1, D), on the device of the rollout and in its precision. Sums over chunks of
/// kScoreChunk numbers are computed in that precision; the host adds them in f64.
SurrogateScores score(Rollout& rollout, const Surrogate& model, const Buffer& latents,
                      const Buffer& climatology, RolloutMode mode = RolloutMode::steps);
inline constexpr int64_t kScoreChunk = 8192;
/// The same for latents on the host.
SurrogateScores score(const Device& device, const Surrogate& model, const Array& latents,
                      Storage precision = Storage::f32, RolloutMode mode = RolloutMode::steps);

/// Conversion to named arrays for files, and back. Throws InputError for arrays that are not those of a surrogate.
std::vector<std::pair<std::string, Array>> to_arrays(const Surrogate& model);
Surrogate surrogate_from(const std::vector<std::pair<std::string, Array>>& arrays, std::string_view where);

}  // namespace lockstep::flow
