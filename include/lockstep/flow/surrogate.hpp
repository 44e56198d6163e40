// Linear models of series of latents (any matrix, one frame per row): learnt by ridge regression or dynamic mode
// decomposition, rolled out on a device, and scored on held-out frames.
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
  ridge,  // singular vectors of all training frames, weights by (X'X + lambda)^-1 X'Y
  dmd,    // singular vectors of all training frames but the last, weights of least squares
};
std::span<const Choice<SurrogateMethod>> choices(SurrogateMethod);

struct SurrogateOptions {
  SurrogateMethod method = SurrogateMethod::ridge;
  /// Share of the frames that is learnt, the first ones; the others are held out. Above 0 and below 1.
  double train_share = 0.5;
  int64_t delays = 1;  // frames in a state
  int64_t rank = 0;    // singular vectors to keep; 0: as many as contain `share` of the sum of squares
  double share = 1;    // 1: all above rounding
  double lambda = 1e-3;
};

void describe(Schema<SurrogateOptions>& schema);

inline constexpr int64_t kMaxLatent = 1 << 20, kMaxState = 2048;  // numbers of a latent; of a state

struct Surrogate {
  SurrogateOptions options;
  int64_t latent_size = 0;   // D
  int64_t rank = 0;          // r
  int64_t train_frames = 0;  // the first ones
  Array basis;               // (r, D) f64, orthonormal rows
  Array step;  // (delays r, delays r) f64: states hold the coordinates of `delays` frames, oldest first
  Array climatology;  // (D) f64, mean of the training frames
  Array last;         // (delays, D) f64, the last training frames

  int64_t state_size() const { return options.delays * rank; }
};

/// latents (T, D), f32 or f64. Throws InputError for another rank, frames that are not finite, D above kMaxLatent,
/// delays times rank above kMaxState, invalid options, and too few frames: `delays` + 1 for learning and one held
/// out.
Surrogate learn(const Array& latents, const SurrogateOptions& options = {});
/// A surrogate whose long arrays are on a device; the model on the host lacks basis, climatology and last frames.
struct LearntOnDevice {
  Surrogate model;
  Buffer
      basis;  // (D, r), the columns are the rows of Surrogate::basis; f64, or f32 where the device has no f64
  Buffer climatology;  // (1, D)
};
/// The same for latents (T, D) on a device. The host reads only matrices of the size frames × frames: products over
/// the numbers of frames are computed on the device in f64, with the same bits on every device. Small singular values
/// come from Gram matrices of the remainders of the larger ones. On WebGPU, which has no f64, and with more than
/// kMaxState training frames, the host computes everything.
LearntOnDevice learn(const Device& device, const Buffer& latents, const SurrogateOptions& options = {});
/// As returned by learn() of an array.
Surrogate to_host(const Device& device, const LearntOnDevice& learnt, const Buffer& latents);
/// Eigenvalues of `step`, from one frame to the next, largest first.
std::vector<std::complex<double>> eigenvalues(const Surrogate& model);

enum class RolloutMode : uint8_t {
  steps,     // one product per step
  doubling,  // n states times step^n give the next n: log2(steps) products
};
std::span<const Choice<RolloutMode>> choices(RolloutMode);

/// States of a surrogate on a device, bit-identical on CPU, interpreter and CUDA; the modes differ by rounding.
class Rollout {
 public:
  /// `precision`: f32 or f64. Throws UnsupportedError for f64 on a device without it.
  Rollout(const Device& device, const Surrogate& model, Storage precision = Storage::f32);
  Rollout(const Device& device, const LearntOnDevice& learnt, Storage precision = Storage::f32);

  /// latents (members delays, D) in the precision: each member's last frames, oldest first. One member or more.
  void start(const Buffer& latents);
  /// out (steps members, D): frame s of member m is row s members + m. Continues from the last start; returns before
  /// completion.
  void run(const Buffer& out, RolloutMode mode = RolloutMode::steps);
  /// The frames `steps` after the start, out (members, D), by products with the powers step^1, 2, 4 … of its binary
  /// representation. Powers are cached.
  void jump(int64_t steps, const Buffer& out);

  /// Bytes of operator, basis, states and powers.
  int64_t bytes() const;
  const Device& device() const;
  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// Relative L2 of latents, frame by frame: |predicted - true| / |true|.
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
  /// Mean over the frames of the part, each predicted from the true frames before it.
  double one_step_in_sample = 0, one_step_held_out = 0, one_step_persistence = 0;  // the last: held out
  Buffer predicted_in_sample, predicted_held_out;                                  // (n, D), on the device
};
/// `latents` (T, D) and `climatology` (1, D) on the rollout's device and in its precision. The host reads sums: in the
/// precision over runs of kScoreChunk numbers, in f64 beyond.
SurrogateScores score(Rollout& rollout, const Surrogate& model, const Buffer& latents,
                      const Buffer& climatology, RolloutMode mode = RolloutMode::steps);
inline constexpr int64_t kScoreChunk = 8192;
/// The same of latents on the host.
SurrogateScores score(const Device& device, const Surrogate& model, const Array& latents,
                      Storage precision = Storage::f32, RolloutMode mode = RolloutMode::steps);

/// As arrays for files, and back; throws InputError for others.
std::vector<std::pair<std::string, Array>> to_arrays(const Surrogate& model);
Surrogate surrogate_from(const std::vector<std::pair<std::string, Array>>& arrays, std::string_view where);

}  // namespace lockstep::flow
