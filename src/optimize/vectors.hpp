// Vectors on a device that minimisers need beyond the primitives: all buffers of a call are of one storage, f32 or
// f64, and one length.
#pragma once

#include <span>
#include <vector>

#include "lockstep/optimize.hpp"

namespace lockstep::optimize {

/// Numbers of a buffer of f32 or f64 as f64.
std::vector<double> download_numbers(const Device& device, const Buffer& buffer);
/// Replaces them.
void write_numbers(const Device& device, std::span<const double> numbers, const Buffer& buffer);

/// Waits for the number. NaN where an element is NaN.
double max_abs(const Device& device, const Buffer& x);
double dot(const Device& device, const Buffer& x, const Buffer& y);
double norm(const Device& device, const Buffer& x);

/// v = momentum v + g; step = -rate v
void momentum_step(const Device& device, const Buffer& g, const Buffer& v, const Buffer& step,
                   double momentum, double rate);
/// Adam's running means of g and g^2, and their exponents.
inline constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
/// m, v: running means; step = -rate (m c1) / (sqrt(v c2) + 1e-8) - decay x; x += step.
void adam_step(const Device& device, const Buffer& g, const Buffer& m, const Buffer& v, const Buffer& x,
               const Buffer& step, double rate, double c1, double c2, double decay);

/// Vectors that SGD, Adam and AdamW keep between steps.
class FirstOrderState {
 public:
  /// Vectors as the objective's gradient. AdamW pulls x, a copy of the point, towards 0 where points and steps have
  /// the same coordinates; others have no place to decay to.
  FirstOrderState(const Objective& objective, Method method);
  /// The next step from the objective's gradient.
  const Buffer& next(const Objective& objective, const Options& options);
  const Buffer& step() const { return step_; }

  /// Means or velocity, squares, the decaying copy; and how many steps there were.
  std::vector<std::vector<double>> vectors(const Device& device) const;
  void restore(const Device& device, std::span<const std::vector<double>> vectors, int64_t steps);
  int64_t steps() const { return steps_; }

 private:
  Method method_;
  Buffer step_, first_, second_, point_;
  int64_t steps_ = 0;
};

/// The numbers that decide on a step, brought to the host in one read.
struct StepNumbers {
  double value = 0, step_norm = 0, gradient_max = 0, point_norm = 0;  // a NaN gradient gives NaN
};
class StepReader {
 public:
  explicit StepReader(Objective& objective);
  /// Value and gradient at the point moved by step, which is left as the objective's trial.
  StepNumbers evaluate(const Buffer& step);

 private:
  Objective& objective_;
  Buffer step_square_, most_, least_, point_square_, masked_, numbers_;  // one number each but the last two
};

}  // namespace lockstep::optimize
