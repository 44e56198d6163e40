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
