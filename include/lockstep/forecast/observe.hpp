// An ensemble of GRUs that learns a training's next loss while it runs, by truncated backpropagation through time.
//
//   forecast::OnlineEnsemble ensemble(device, forecast::random_rollout_model({.hidden = 128}), {});
//   for (...) ensemble.observe(features, loss_that_followed);  // of the state before the step, number 0 its loss
//   forecast::Rollout ahead(device, ensemble.model(features), {.steps = 50});
//
// M members, D hidden, I features, S entries of the state's softmax, K observations of a window. Heads (rollout.hpp):
// classic, activation a = w [h; s], loss exp(clip(a, -10, 10)); two_hot, the mean of symexp(bin), trained by the
// cross-entropy against the two bins next to the loss, weighted so that their mean is the loss. The sampled classes of the
// state pass their gradients on to their probabilities (straight through).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/forecast/encoder.hpp"
#include "lockstep/forecast/rollout.hpp"
#include "lockstep/nn/optimizer.hpp"

namespace lockstep::forecast {

/// Error that a member's weights minimise under classic heads, with its prediction P of the loss L that came:
enum class Objective : uint8_t {
  logarithmic,  // (log P - log L)^2 / 2: the same for losses in any unit
  squared,      // (P - L)^2 / 2, the published one
};
std::span<const Choice<Objective>> choices(Objective);
std::string_view name(Objective objective);

/// A posterior of the sampled state under two-hot heads. Its logits are Q [h; symlog L] + Q_b, with the loss L that
/// came; the cross-entropy is that of a state drawn from it, and the loss has another term: a KL(sg(q) || p) +
/// b KL(q || sg(p)) with the prior p of h alone, sg: no gradient through it, while KL, summed over the categoricals, is
/// above `free_nats` (as in DreamerV3). Predictions and rollouts draw from the prior. Q begins as the prior, in each
/// ensemble anew.
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
  /// K: errors are followed back through so many steps, from the states that the weights of that time had left.
  int64_t window = 3;
  /// Gradients that came back `n` steps count decay^n. 1 is the gradient; the published weighting is 0.7.
  double decay = 1;
  nn::OptimizerOptions optimizer{.schedule = {.rate = 1e-3}, .clip_norm = 5};
};

struct Observation {
  std::vector<double> members;  // each one's prediction, made before its weights saw the loss
  double predicted = 0;         // their mean
  double divergence = 0;        // mean KL(q || p) in nats, where there is a posterior
};

class OnlineEnsemble {
 public:
  /// Throws InputError as check() of the model does, for windows outside of 1 … 1024, a decay outside of [0, 1],
  /// Objective::squared of two_hot heads, a posterior of classic ones, and more than one row of features. States begin
  /// at the model's h0.
  OnlineEnsemble(const Device& device, const RolloutModel& model, const ObserveOptions& options);
  ~OnlineEnsemble();
  OnlineEnsemble(OnlineEnsemble&&) noexcept;
  OnlineEnsemble& operator=(OnlineEnsemble&&) noexcept;

  /// One step of all members on `features` (I), one of the optimiser on `loss`, which followed them. Waits for the
  /// device. Throws InputError for features of another count, numbers that are not finite, and with classic heads and
  /// Objective::logarithmic for a loss that is not positive.
  Observation observe(std::span<const double> features, double loss);
  int64_t observations() const;

  /// The weights as they are, with the members' present states as h0, to go on from `features` (I).
  RolloutModel model(std::span<const double> features) const;
  /// Gradient of the last observation: M members (W (I, 3 D), U (D, 3 D), b (3 D), rb of reset_after, as GruWeights has
  /// them) one after the other, then the head: w (D + S), or P, P_b, V, V_b and of a posterior Q (C K, D + 1), Q_b.
  /// Clipped, where clipping is asked for.
  Buffer gradient() const;
  Buffer parameters() const;
  std::vector<Kernel> kernels() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Predictions, error and last model of an ensemble that observed a finished or running training.
struct ObserveRun {
  std::vector<double> steps, losses, predicted;  // of every row but the first; predicted from the rows before
  /// Mean |f(predicted) - f(loss)| over the later half of the rows, and that of the loss of the row before. f is the
  /// logarithm, or symlog(t) = sign(t) log(1 + |t|) where a loss or prediction is not positive.
  double error = 0, last_value_error = 0;
  bool logarithmic = true;
  double divergence = 0;  // of the last observation
  RolloutModel model;     // what it is after the last row, with that row's features
};
/// Stage "forecast.observe": one observation for each row of the log after the first. Features are those of
/// encode_states() over `history` rows, normalised, but for number 0, the loss. Throws InputError for a model of
/// another number of features and logs of fewer than two rows.
ObserveRun observe_log(Context& context, const SignalTable& log, const RolloutModel& start,
                       const ObserveOptions& options, int64_t history = kMostHistory);
/// Members of the program's JSON.
std::string to_json(const ObserveRun& run);

}  // namespace lockstep::forecast
