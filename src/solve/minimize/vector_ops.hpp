// Updates of tangent vectors that the methods need beyond the primitives. All buffers are of one storage, f32
// or f64, and one length.
#pragma once

#include "lockstep/device.hpp"
#include "solve/evaluate/evaluator.hpp"

namespace lockstep::solve {

/// q = clamp(d, 1e-6, 1e32) p
void scale_by(const Device& device, const Buffer& d, const Buffer& p, const Buffer& q);
/// q = p / clamp(d, 1e-6, 1e32)
void divide_by(const Device& device, const Buffer& d, const Buffer& p, const Buffer& q);
/// q = max(p, q)
void raise(const Device& device, const Buffer& p, const Buffer& q);
/// Waits for the number. NaN where an element is NaN.
double max_abs(const Device& device, const Buffer& x);
double dot(const Device& device, const Buffer& x, const Buffer& y);
double norm(const Device& device, const Buffer& x);

/// v = momentum v + g; step = -rate v
void momentum_step(const Device& device, const Buffer& g, const Buffer& v, const Buffer& step,
                   double momentum, double rate);
/// m, v: running means of g and g^2; step = -rate (m c1) / (sqrt(v c2) + 1e-8) - decay x; x += step.
void adam_step(const Device& device, const Buffer& g, const Buffer& m, const Buffer& v, const Buffer& x,
               const Buffer& step, double rate, double c1, double c2, double decay);

/// What decides on a step, brought to the host in one read.
struct StepNumbers {
  double cost = 0, step_norm = 0, gradient_max = 0, state_norm = 0;  // a NaN gradient gives NaN
};
class StepReader {
 public:
  explicit StepReader(const Evaluator& evaluator);
  /// Cost and gradient at the evaluator's state [+] step, which is left as its candidate. Fixed blocks do not
  /// count in the state's norm.
  StepNumbers try_gradient(const Buffer& step);

 private:
  const Evaluator& evaluator_;
  Buffer step_square_, most_, least_, state_square_, masked_,
      numbers_;  // one number each but masked_ and numbers_
};

}  // namespace lockstep::solve
