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

/// A learning rate by step number, 0 for the first. Over the first `warmup` steps it rises linearly, rate (step + 1)
/// / warmup; then `decay` applies.
struct Schedule {
  enum class Decay : uint8_t {
    constant,
    cosine,  // to rate * final_share at `total` steps (Loshchilov and Hutter 2017, without restarts)
    linear,  // to the same, linearly
    step,    // times `factor` every `every` steps
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
  double momentum = 0;      // sgd
  double weight_decay = 0;  // adamw: decoupled (Loshchilov and Hutter 2019), times the rate of the step
  double clip_norm = 0;     // gradients beyond this 2-norm are scaled down to it; 0: none
};
void describe(lockstep::Schema<OptimizerOptions>& schema);

/// Launches only; not thread-safe.
class Optimizer {
 public:
  /// `parameters` (n), f32 or f64, are updated by steps. Throws InputError for invalid options.
  Optimizer(const Device& device, const Buffer& parameters, const OptimizerOptions& options);

  /// Moves the parameters by the step that belongs to `gradient` (n), which clipping scales in place. A NaN in it
  /// stays one.
  void launch_step(const Buffer& gradient);
  /// The same with a given learning rate.
  void launch_step(const Buffer& gradient, double rate);

  const OptimizerOptions& options() const { return options_; }
  double next_rate() const { return options_.schedule.at(steps_); }
  /// Steps so far, which determine the rate; and steps since the moments were zero, which Adam's bias corrections
  /// use.
  int64_t steps() const { return steps_; }
  int64_t moment_steps() const { return moment_steps_; }
  void set_steps(int64_t steps, int64_t moment_steps) { steps_ = steps, moment_steps_ = moment_steps; }
  /// Resets the moments to zero; the schedule continues.
  void forget_moments();
  /// (n) each, in the storage of the parameters: Adam's mean of gradients or the velocity; Adam's mean of squares
  /// (SGD: zeros); the last update. With the parameters and the counts they determine the next step.
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
