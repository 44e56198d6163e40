// Minimises a function of a vector whose value and gradient are computed on a device. Methods: L-BFGS with a line search
// for the strong Wolfe conditions (Nocedal and Wright 2006), SGD with momentum, Adam (Kingma and Ba 2015, with
// beta 0.9 and 0.999 and epsilon 1e-8), AdamW (Loshchilov and Hutter 2019). Vectors stay on the device; the host reads a
// few numbers per trial.
//
//   struct Bowl final : optimize::VectorObjective {
//     using VectorObjective::VectorObjective;
//     void launch_at(const Buffer& x, const Buffer& gradient, const Buffer& value) override { … }
//   };
//   Bowl bowl(device, device.upload(start));
//   const optimize::Result result = optimize::minimize(bowl);
//   device.download<double>(bowl.point());                       // the minimiser
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/device.hpp"

namespace lockstep::optimize {

/// A function and the accepted point. Buffers are f32 or f64 with one axis; each function returns the same buffer in
/// every call.
class Objective {
 public:
  virtual ~Objective() = default;
  virtual const Device& device() const = 0;
  virtual Buffer point() const = 0;  // (n), the accepted point
  virtual Buffer trial() const = 0;  // (n), the point of the last launch()
  /// (m), the gradient at the point of the last launch(). Steps have this storage and length.
  virtual Buffer gradient() const = 0;
  virtual Buffer value() const = 0;  // (1), the value at the point of the last launch()
  /// (n) in the storage of the point: 1 for numbers that belong to the norm |x|, 0 for others. Empty: all belong to it.
  virtual Buffer counted() const { return {}; }
  /// Sets trial = point + step, or its retraction on a manifold, and the value and gradient there. Launches only.
  virtual void launch(const Buffer& step) = 0;
  /// Whether launch() may be recorded into a graph after its first run.
  virtual bool recordable() const { return true; }
  /// Called after the trial was copied to the point.
  virtual void accepted() {}
};

/// A function of a vector, computed by launch_at().
class VectorObjective : public Objective {
 public:
  /// `start` (n), f32 or f64, becomes the point; `value` is of storage `value_storage`.
  VectorObjective(const Device& device, const Buffer& start, Storage value_storage);
  VectorObjective(const Device& device, const Buffer& start)
      : VectorObjective(device, start, start.storage()) {}

  /// Computes value (1) and gradient (n) at x (n). Launches only.
  virtual void launch_at(const Buffer& x, const Buffer& gradient, const Buffer& value) = 0;

  const Device& device() const final { return device_; }
  Buffer point() const final { return point_; }
  Buffer trial() const final { return trial_; }
  Buffer gradient() const final { return gradient_; }
  Buffer value() const final { return value_; }
  void launch(const Buffer& step) final;

 private:
  Device device_;
  Buffer point_, trial_, gradient_, value_;
};

enum class Method : uint8_t { lbfgs, sgd, adam, adamw };
enum class Termination : uint8_t {
  value_tolerance,
  gradient_tolerance,
  step_tolerance,
  max_iterations,
  stopped,     // by the callback
  no_descent,  // no step reduces the value
  failure,     // value or gradient are not finite
};
std::string_view name(Method method);
std::string_view name(Termination termination);

struct Iteration {
  int iteration = 0;
  double value = 0;         // after the iteration
  double value_change = 0;  // value before minus value after
  double gradient_max = 0;  // largest |component|
  double step_norm = 0;     // 2-norm
  int trials = 0;           // evaluations in this iteration
};

struct Options {
  Method method = Method::lbfgs;
  int max_iterations = 100;
  double value_tolerance = 1e-9;      // |change| / |value|
  double gradient_tolerance = 1e-12;  // largest |component|
  double step_tolerance = 1e-12;      // |step| / (|x| + step_tolerance)
  int history = 10;                   // lbfgs: pairs of steps and gradient changes, 1 to 1000
  double learning_rate = 1e-2;        // sgd, adam, adamw
  double momentum = 0;                // sgd
  double weight_decay = 0;            // adamw; only if steps and points have the same coordinates
  /// Called after each iteration; false stops.
  std::function<bool(const Iteration&)> callback;
};

struct Result {
  double first_value = 0, value = 0, gradient_max = 0;
  int iterations = 0, evaluations = 0;
  Termination termination = Termination::failure;
  std::vector<Iteration> trace;
};

/// Minimises from the objective's point and leaves the best point found there. Throws InputError for invalid options and
/// for a start whose value is not finite.
Result minimize(Objective& objective, const Options& options = {});

}  // namespace lockstep::optimize
