// An ensemble of GRUs that learns the next loss of a running training by truncated backpropagation through time.
//
//   forecast::OnlineEnsemble ensemble(device, forecast::random_rollout_model({.hidden = 128}), {});
//   for (...) ensemble.observe(features, next_loss);  // features of the state before the step; feature 0 is its loss
//   forecast::Rollout ahead(device, ensemble.model(features), {.steps = 50});
//
// M members, D hidden units, I features, S entries of the softmax of the state, K observations in a window. Heads
// (rollout.hpp): classic predicts the loss exp(clip(a, -10, 10)) with the activation a = w [h; s]. two_hot predicts the
// mean of symexp(bin) and is trained by the cross-entropy with the two bins adjacent to the loss, weighted so that their
// mean is the loss. Gradients of sampled classes are passed to their probabilities (straight-through estimator).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/forecast/encoder.hpp"
#include "lockstep/forecast/rollout.hpp"
#include "lockstep/nn/optimizer.hpp"

namespace lockstep::forecast {

/// The error that a member with classic heads minimises, for its prediction P of the observed loss L.
enum class Objective : uint8_t {
  logarithmic,  // (log P - log L)^2 / 2: independent of the unit of the loss
  squared,      // (P - L)^2 / 2, as published
};
std::span<const Choice<Objective>> choices(Objective);
std::string_view name(Objective objective);

/// A posterior q of the sampled state with two-hot heads. Its logits are Q [h; symlog L] + Q_b for the observed loss L.
/// The cross-entropy is then that of a state sampled from q. The loss has the additional term
/// a KL(sg(q) || p) + b KL(q || sg(p)), where p is the prior given h and sg stops gradients, if KL, summed over the
/// categoricals, exceeds `free_nats` (DreamerV3, Hafner et al. 2025). Predictions and rollouts sample from the prior.
/// Each ensemble initialises Q with the prior.
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
  /// K, 1 to 1024: number of steps through which errors are propagated back. The states of these steps are those computed
  /// with the weights of their time.
  int64_t window = 3;
  /// Gradients from n steps back have the weight decay^n, 0 to 1. 1 is the full gradient; the published value is 0.7.
  double decay = 1;
  nn::OptimizerOptions optimizer{.schedule = {.rate = 1e-3}, .clip_norm = 5};
};

struct Observation {
  std::vector<double> members;  // prediction of each member, before its weights are updated with the loss
  double predicted = 0;         // mean of the members
  double divergence = 0;        // mean KL(q || p) in nats, if there is a posterior
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

  /// Predicts with all members from `features` (I), then updates their weights with the `loss` that was observed after
  /// them. Waits for the device. Throws InputError for a wrong number of features, numbers that are not finite, and a
  /// loss that is not positive with classic heads and Objective::logarithmic.
  Observation observe(std::span<const double> features, double loss);
  int64_t observations() const;

  /// A model with the current weights and, as h0, the current states of the members, for a rollout from `features` (I).
  RolloutModel model(std::span<const double> features) const;
  /// Gradient of the last observation, clipped if clipping is enabled. It contains W (I, 3 D), U (D, 3 D), b (3 D) and,
  /// for reset_after, rb of each member, as in GruWeights, and then the head: w (D + S), or P, P_b, V, V_b and, with a
  /// posterior, Q (C K, D + 1), Q_b. parameters() has the same layout.
  Buffer gradient() const;
  Buffer parameters() const;
  std::vector<Kernel> kernels() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Predictions, errors and final model of an ensemble that observed a log.
struct ObserveRun {
  std::vector<double> steps, losses, predicted;  // of every row except the first; predicted from earlier rows
  /// Mean |f(predicted) - f(loss)| over the later half of the rows, and the same for the previous loss as the prediction.
  /// f is the logarithm, or symlog(t) = sign(t) log(1 + |t|) if a loss or prediction is not positive.
  double error = 0, last_value_error = 0;
  bool logarithmic = true;  // f is the logarithm
  double divergence = 0;    // of the last observation
  RolloutModel model;       // the model after the last row, with the features of that row
};
/// Stage "forecast.observe": one observation for each row of the log after the first. Features are those of
/// encode_states() over `history` rows, normalised except feature 0, the loss. Throws InputError for a model with another
/// number of features and for a log of fewer than two rows.
ObserveRun observe_log(Context& context, const SignalTable& log, const RolloutModel& start,
                       const ObserveOptions& options, int64_t history = kMostHistory);
/// Members of the program's JSON.
std::string to_json(const ObserveRun& run);

}  // namespace lockstep::forecast
