// First-order optimisers over a flat buffer of parameters: SGD with momentum, Adam, AdamW; learning rate schedules;
// clipping by the global norm.
//
//   nn::Optimizer adam(device, model.parameters(), {.method = optimize::Method::adam});
//   model.launch_gradient(batch, loss, adam.steps());
//   adam.launch_step(model.gradient());
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/device.hpp"
#include "lockstep/optimize.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::nn {

/// A learning rate as a function of the step, from 0. Over the first `warmup` steps it is rate (step + 1) / warmup; then
/// `decay` applies.
struct Schedule {
  enum class Decay : uint8_t {
    constant,
    cosine,  // to rate * final_share at step `total`, as a half cosine (Loshchilov and Hutter 2017, without restarts)
    linear,  // to rate * final_share at step `total`, linearly
    step,    // multiplied by `factor` every `every` steps
  };
  double rate = 1e-3;
  int64_t warmup = 0;
  Decay decay = Decay::constant;
  int64_t total = 0;  // steps of cosine and linear, including warm-up
  double final_share = 0;
  int64_t every = 0;
  double factor = 0.1;

  double at(int64_t step) const;
  /// Throws InputError for numbers out of range.
  void check() const;
};
std::string_view name(Schedule::Decay decay);
void describe(lockstep::Schema<Schedule>& schema);
/// Throws InputError for an unknown name.
Schedule::Decay parse_decay(std::string_view text);

struct OptimizerOptions {
  optimize::Method method = optimize::Method::adam;  // or sgd, adamw
  Schedule schedule;
  double momentum = 0;  // sgd
  double weight_decay =
      0;                 // adamw: decoupled (Loshchilov and Hutter 2019), multiplied by the rate of the step
  double clip_norm = 0;  // gradients with a larger 2-norm are scaled to this norm; 0: no clipping
};
void describe(lockstep::Schema<OptimizerOptions>& schema);

/// The state of an optimiser. Functions launch work without waiting. Not thread-safe.
class Optimizer {
 public:
  /// `parameters` (n), f32 or f64, are updated by steps. Throws InputError for invalid options.
  Optimizer(const Device& device, const Buffer& parameters, const OptimizerOptions& options);

  /// Updates the parameters by one step for `gradient` (n), which clipping scales in place. NaN in the gradient gives
  /// NaN in the parameters.
  void launch_step(const Buffer& gradient);
  /// The same with a given learning rate.
  void launch_step(const Buffer& gradient, double rate);

  const OptimizerOptions& options() const { return options_; }
  double next_rate() const { return options_.schedule.at(steps_); }
  /// steps: number of steps so far, which determines the rate. moment_steps: number of steps since the moments were zero,
  /// which Adam's bias correction uses.
  int64_t steps() const { return steps_; }
  int64_t moment_steps() const { return moment_steps_; }
  void set_steps(int64_t steps, int64_t moment_steps) { steps_ = steps, moment_steps_ = moment_steps; }
  /// Resets the moments to zero; the schedule continues.
  void forget_moments();
  /// Buffers (n) in the storage of the parameters. first: Adam's mean of gradients, or the velocity of SGD. second:
  /// Adam's mean of squared gradients; zeros for SGD. move: the last update. Together with the parameters and the counts
  /// they determine the next step.
  const Buffer& first() const { return first_; }
  const Buffer& second() const { return second_; }
  const Buffer& move() const { return move_; }
  /// 2-norm of the last gradient before clipping, one element; empty without clipping.
  const Buffer& gradient_norm() const { return norm_; }

 private:
  Device device_;
  Buffer parameters_, first_, second_, move_, norm_;
  OptimizerOptions options_;
  int64_t steps_ = 0, moment_steps_ = 0;
};

}  // namespace lockstep::nn
