// Rollouts of an ensemble of GRUs that forecasts a loss: all steps of all members in one launch.
//
//   forecast::RolloutModel model = forecast::random_rollout_model({.hidden = 256, .members = 5});
//   forecast::Rollout rollout(device, model, {.steps = 50});
//   rollout.launch();
//   rollout.result().front().final;
//
// D hidden units, I features, S entries of the softmax of the state, M members, B batch entries, Y steps. Source: the
// RSSM-lite of the crate hybrid-predict-trainer-rs, with the formulas below.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/device.hpp"
#include "lockstep/nn/network.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::nn {
std::span<const Choice<GruForm>> choices(GruForm);
std::string_view name(GruForm form);  // reset-before, reset-after
}  // namespace lockstep::nn

namespace lockstep::forecast {

/// The gates z (update) and r (reset) are sigmoids of W x + b + U h, and n is the candidate:
/// reset_before: n = tanh(W_h x + U_h (r h) + b_h), h' = (1 - z) h + z n (Cho et al. 2014, first form).
/// reset_after:  n = tanh(W_h x + b_h + r (U_h h + rb_h)), h' = (1 - z) n + z h (PyTorch, cuDNN).
using nn::GruForm;
using nn::name;
/// How the state s and the predicted loss L follow from h.
/// classic: s = softmax of h[floor(i D / S)], L = max(exp(clip(w [h; s], -10, 10)), 1e-6).
/// two_hot: s is one sampled class of each categorical, with logits P h + P_b, mixed with 1 % of the uniform
/// distribution. L is the mean of symexp(bin) under softmax(V [h; s] + V_b), with equally spaced bins from -20 to 20.
enum class Heads : uint8_t { classic, two_hot };
std::span<const Choice<Heads>> choices(Heads);
std::string_view name(Heads heads);

/// Weights on the host, all f32 or all f64; gates in the order z, r, h.
struct RolloutModel {
  std::array<Array, 3> w;   // (M, D, I)
  std::array<Array, 3> u;   // (M, D, D)
  std::array<Array, 3> b;   // (M, D)
  std::array<Array, 3> rb;  // (M, D) recurrent biases, of reset_after; empty: 0
  Array head;               // (D + S), for classic heads; shared by the members
  Array features;           // (I) or (B, I); feature 0 is the loss L
  Array h0;                 // (M, D); empty: 0
  // For two-hot heads: C categoricals of K classes, N bins; shared by the members.
  Array projection, projection_bias;  // (C, K, D), (C, K)
  Array bins, bins_bias;              // (N, D + C K), (N)
  // The form and the heads that the weights were learned with, if known; others are rejected.
  std::optional<GruForm> form;
  std::optional<Heads> heads;

  Storage storage() const { return u[0].storage(); }
  int64_t members() const { return u[0].size(0); }
  int64_t hidden() const { return u[0].size(1); }
  int64_t inputs() const { return w[0].size(2); }
  int64_t batch() const { return features.rank() == 2 ? features.size(0) : 1; }
};

struct RandomModelOptions {
  int64_t hidden = 256, members = 5, features = 64, batch = 1, states = 32;
  uint64_t seed = 0;
  Storage storage = Storage::f32;
  int64_t categoricals = 8, classes = 8, bins = 63;  // of the two-hot heads
};
/// A random model. Matrices are uniform in ±sqrt(2 / (I + D)), biases 0, the classic head is uniform in ±0.01, and
/// h0 = 0. The initial weights of the two-hot bins are exp(-8 (bin - 1)^2), so the predicted loss is about 1.7. Features
/// resemble those of a training in its middle: feature 0 (the loss) is in [1, 3), the others are in [-1, 1). The random
/// numbers are counter-based and the same on every computer.
RolloutModel random_rollout_model(const RandomModelOptions& options);
/// Reads a model (.npz) with the arrays W_z W_r W_h, U_z U_r U_h, b_z b_r b_h, w, features and, optionally, h0,
/// rb_z rb_r rb_h, P P_b V V_b, gru and heads (names in UTF-8, u8). Throws InputError, naming file and array, for a
/// missing array, another shape or type, and values that are not finite.
RolloutModel load_rollout_model(const std::filesystem::path& path, Heads heads = Heads::classic);
/// Writes the arrays that load_rollout_model() reads.
void save_rollout_model(const RolloutModel& model, const std::filesystem::path& path);
/// Throws InputError, naming `where` and the array, if shapes or types disagree or a value is not finite.
void check(const RolloutModel& model, GruForm form, Heads heads, std::string_view where);

/// Kernels of a rollout. All give the same bits in exact numerics.
enum class RolloutPath : uint8_t {
  automatic,  // the fastest one that supports the model and the device
  one_launch,  // one launch for all steps: a group for each member and batch entry, with barriers between steps
  by_steps,    // three launches per step over the rows
  by_rows,     // two launches per step (one for reset_after), with groups of 32 lanes for a few rows each
  /// A native kernel: a cluster of 16 blocks for each member and batch entry, with the weights in registers. Requires
  /// f32, classic heads, sm_90 and D = 128, 256 or 512; in fast numerics also D = 1024, with weights rounded to bf16.
  cluster,
  /// A native kernel for many starting points, in fast numerics only: a cluster of D / 64 blocks for up to 64 starting
  /// points of a member, with products on tensor cores and U, h and r h rounded to f16. Requires f32, classic heads,
  /// sm_90 and D a multiple of 64 up to 512.
  batch,
};

/// Storage of U in the portable kernels for models in f32; all else is f32. fp8 is e4m3 with a power of two for each row,
/// which scales the largest magnitude of the row into (224, 448]. Results are bit-identical to those of the model with U
/// rounded by round_weights().
enum class WeightType : uint8_t { f32, bf16, fp8 };
std::span<const Choice<WeightType>> choices(WeightType);
std::string_view name(WeightType type);
/// Matrices (M, D, K), f32, rounded to nearest even. Throws InputError, naming `where`, for a weight that rounds to
/// infinity.
Array round_weights(const Array& matrices, WeightType type, std::string_view where = "round_weights");

inline constexpr int64_t kMostRolloutSteps = 1 << 20;

struct RolloutOptions {
  GruForm form = GruForm::reset_before;
  Heads heads = Heads::classic;
  int64_t steps = 50;
  uint64_t seed = 0;  // of the sampled categoricals
  RolloutPath path = RolloutPath::automatic;
  WeightType weights = WeightType::f32;  // bf16 and fp8 require a model in f32 and the portable kernels
};

/// The forecast of one member, with d_t = L_t - L_(t-1) and L_0 = L.
struct MemberForecast {
  std::vector<double> trajectory;    // L_1 … L_Y
  std::vector<double> step_deltas;   // d_1 … d_Y
  std::vector<double> hidden_norms;  // |h| after each step
  double loss_variance = 0;          // population variance of the trajectory
  /// 1 / (1 + mean |d_(t+1) - d_t| / mean |d_t|): 1 for a straight line, 1/3 for a zigzag; 1 if there are fewer than two
  /// differences or all are 0.
  double trajectory_smoothness = 1;
};

/// Forecast of one batch entry. `final` is the mean of the members' L_Y, or L without steps.
struct Forecast {
  std::vector<double> trajectory;  // mean over the members
  double final = 0;
  /// classic: sigma = sqrt(population variance of the members' L_Y) (1 + 0.1 sqrt(Y)), and aleatoric = epistemic =
  /// sigma / 2. two_hot: epistemic = population variance of the members' L_Y, aleatoric = mean variance of the
  /// distribution that the head predicts at the last step, sigma = sqrt(epistemic + aleatoric).
  double sigma = 0, aleatoric = 0, epistemic = 0;
  std::vector<double> sigmas;  // sigma after each step Y = 1, 2, …
  double entropy = 0;          // of the state, mean over members and steps
  double confidence = 1;       // 1 / (1 + sigma)
  std::vector<MemberForecast> members;
};

/// Bytes on the device, computed before allocation.
struct RolloutMemory {
  int64_t weights = 0, state = 0, outputs = 0;
  int64_t shared_per_group = 0;  // shared memory of one_launch; 0 if the state is in buffers
  int64_t total() const { return weights + state + outputs; }
};

class Rollout {
 public:
  /// Uploads the weights. Throws InputError as check() does, and for steps outside 0 … 2^20.
  Rollout(const Device& device, const RolloutModel& model, const RolloutOptions& options);
  ~Rollout();
  Rollout(Rollout&&) noexcept;
  Rollout& operator=(Rollout&&) noexcept;

  /// Launches all steps from features and h0.
  void launch();
  /// One forecast per batch entry. Waits.
  std::vector<Forecast> result() const;
  /// Losses, norms of h and entropies (M, B, Y each), and the final states (M, B, D); with two-hot heads also variances
  /// (M, B, Y).
  std::vector<Array> raw() const;
  const RolloutMemory& memory() const;  // predicted; equal to the bytes allocated
  RolloutPath path() const;             // the one in use
  /// Reason why the native kernel `cluster` was not used; empty if it was used or not requested.
  const std::string& no_cluster() const;
  /// Reason why the native kernel `batch` was not used although fast numerics and the number of starting points allow it.
  const std::string& no_batch() const;
  /// Location of h between the steps: "shared memory", or "buffers" if it exceeds the shared memory of a group.
  std::string state_place() const;
  std::vector<Kernel> kernels() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

struct RolloutRun {
  std::vector<Forecast> forecasts;
  RolloutMemory memory;
  int64_t used_bytes = 0;  // allocated on the device
  std::string path, state_place;
  std::string no_cluster;  // Rollout::no_cluster
  std::string no_batch;    // Rollout::no_batch
};
/// Stage "forecast.rollout".
RolloutRun run_rollout(Context& context, const RolloutModel& model, const RolloutOptions& options);
/// The forecasts of raw outputs, as computed by Rollout::result.
std::vector<Forecast> forecasts_of(const std::vector<Array>& raw, const RolloutModel& model,
                                   const RolloutOptions& options);
/// Members of the program's JSON.
std::string to_json(const RolloutRun& run);
/// Draws the members, their mean, and bands of one and two sigma to a PNG file, from the loss at step 0 on. Throws
/// InputError for a forecast without steps.
void draw_rollout(const std::filesystem::path& file, double loss, const Forecast& forecast,
                  const std::string& title);

}  // namespace lockstep::forecast
