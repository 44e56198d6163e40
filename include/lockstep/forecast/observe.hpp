// An ensemble of GRUs that learns the next loss of a running training by truncated backpropagation through time.
//
//   forecast::OnlineEnsemble ensemble(device, forecast::random_rollout_model({.hidden = 128}), {});
//   for (...) ensemble.observe(features, loss_that_followed);  // of the state before the step, number 0 its loss
//   forecast::Rollout ahead(device, ensemble.model(features), {.steps = 50});
//
// M members, D hidden units, I features, S entries of the state's softmax, K observations in a window. Heads
// (rollout.hpp): classic: activation a = w [h; s], loss exp(clip(a, -10, 10)); two_hot: the mean of symexp(bin),
// trained by the cross-entropy with the two bins adjacent to the loss, weighted so that their mean is the loss.
// Sampled classes of the state pass their gradients to their probabilities (straight through).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/forecast/encoder.hpp"
#include "lockstep/forecast/rollout.hpp"
#include "lockstep/nn/optimizer.hpp"

namespace lockstep::forecast {

/// Error minimised by a member under classic heads, for its prediction P of the observed loss L:
enum class Objective : uint8_t {
  logarithmic,  // (log P - log L)^2 / 2: the same for losses in any unit
  squared,      // (P - L)^2 / 2, the published one
};
std::span<const Choice<Objective>> choices(Objective);
std::string_view name(Objective objective);

/// A posterior of the sampled state under two-hot heads, with logits Q [h; symlog L] + Q_b for the observed loss L.
/// The cross-entropy is then that of a state sampled from it. The loss has the additional term a KL(sg(q) || p) + b
/// KL(q || sg(p)) with the prior p of h and stopped gradients sg, if KL, summed over the categoricals, exceeds
/// `free_nats` (as in DreamerV3). Predictions and rollouts sample from the prior. Q is initialised with the prior in
/// each ensemble.
struct PosteriorTerm {
  bool on = false;
  double free_nats = 1, prior_weight = 1, posterior_weight = 0.1;  // a, b
};

struct ObserveOptions {
  GruForm form = GruForm::reset_before;
  Heads heads = Heads::classic;
  Objective objective = Objective::logarithmic;  // of classic heads
  uint64_t seed = 0;                             // of the sampled classes
  PosteriorTerm posterior;
  /// K: number of steps through which errors are propagated back, from states computed with the weights of that time.
  int64_t window = 3;
  /// Weight decay^n of gradients from `n` steps back. 1 is the full gradient; the published weighting is 0.7.
  double decay = 1;
  nn::OptimizerOptions optimizer{.schedule = {.rate = 1e-3}, .clip_norm = 5};
};

struct Observation {
  std::vector<double> members;  // prediction of each member before its weights were updated with the loss
  double predicted = 0;         // their mean
  double divergence = 0;        // mean KL(q || p) in nats, where there is a posterior
};

class OnlineEnsemble {
 public:
  /// Throws InputError as check() of the model does, for windows outside 1 … 1024, a decay outside [0, 1],
  /// Objective::squared with two_hot heads, a posterior with classic ones, and more than one row of features. States
  /// start at the model's h0.
  OnlineEnsemble(const Device& device, const RolloutModel& model, const ObserveOptions& options);
  ~OnlineEnsemble();
  OnlineEnsemble(OnlineEnsemble&&) noexcept;
  OnlineEnsemble& operator=(OnlineEnsemble&&) noexcept;

  /// One step of all members on `features` (I), then one of the optimiser on the `loss` that followed them. Waits for
  /// the device. Throws InputError for a wrong number of features, numbers that are not finite, and a loss that is
  /// not positive with classic heads and Objective::logarithmic.
  Observation observe(std::span<const double> features, double loss);
  int64_t observations() const;

  /// The current weights, with the present states of the members as h0, to continue from `features` (I).
  RolloutModel model(std::span<const double> features) const;
  /// Gradient of the last observation: M members (W (I, 3 D), U (D, 3 D), b (3 D), rb of reset_after, as in
  /// GruWeights) one after the other, then the head: w (D + S), or P, P_b, V, V_b and with a posterior Q (C K, D +
  /// 1), Q_b. Clipped if clipping is enabled.
  Buffer gradient() const;
  Buffer parameters() const;
  std::vector<Kernel> kernels() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Predictions, errors and final model of an ensemble that observed a finished or running training.
struct ObserveRun {
  std::vector<double> steps, losses, predicted;  // of every row but the first; predicted from earlier rows
  /// Mean |f(predicted) - f(loss)| over the later half of the rows, and that of the previous loss as the prediction.
  /// f is the logarithm, or symlog(t) = sign(t) log(1 + |t|) if a loss or prediction is not positive.
  double error = 0, last_value_error = 0;
  bool logarithmic = true;
  double divergence = 0;  // of the last observation
  RolloutModel model;     // the model after the last row, with the features of that row
};
/// Stage "forecast.observe": one observation for each row of the log after the first. Features are those of
/// encode_states() over `history` rows, normalised except number 0, the loss. Throws InputError for a model with
/// another number of features and logs of fewer than two rows.
ObserveRun observe_log(Context& context, const SignalTable& log, const RolloutModel& start,
                       const ObserveOptions& options, int64_t history = kMostHistory);
/// Members of the program's JSON.
std::string to_json(const ObserveRun& run);

}  // namespace lockstep::forecast
