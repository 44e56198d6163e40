// Derivatives of kernels: forward mode (`tangent`) and reverse mode (`differentiate`), as rewrites of the traced kernel.
//
//   const Gradient gradient = differentiate(heat, {.inputs = {"b0", "p0"}, .outputs = {"b1"}});
//   gradient.launch(device, extent, Arguments().set("b0", t).set("p0", 0.1f).set("b1_cotangent", dl_dnext)
//                                              .set("b0_gradient", dl_dt).set("p0_gradient", dl_da));
//
// Derivatives of operations are those of ir/ops.def; autodiff.hpp states the rules at kinks. Results are bit-identical
// on every device and for every thread count, because no float is added by an atomic operation. Code that cannot be
// differentiated throws InputError, which names the line. docs/gradients.md lists the supported code.
#pragma once

#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "lockstep/device.hpp"

namespace lockstep {

/// The inputs and outputs to differentiate, by the names of Kernel::parameters. Empty `inputs` selects all float
/// arguments that the kernel reads; empty `outputs` selects all float buffers that it writes.
struct Differentiation {
  std::vector<std::string> inputs, outputs;
};

/// x with derivative 0.
template <class T>
  requires std::is_floating_point_v<T>
Val<T> stop_gradient(const Val<T>& x) {
  using Bits = std::conditional_t<sizeof(T) == 4, u32, u64>;
  return bitcast<T>(bitcast<Bits>(x));
}

/// `value` with user-defined derivatives: each pair is an operand and the derivative with respect to it. Use it for
/// results of iterations, tables and fits, whose automatic derivative is wrong or expensive. The result is bit-identical
/// to `value` if all operands and slopes are finite. Slopes are treated as constants.
template <class T>
  requires std::is_floating_point_v<T>
Val<T> with_derivative(const Val<T>& value, const std::vector<std::pair<Val<T>, Val<T>>>& slopes) {
  Val<T> result = stop_gradient(value);
  // The addend is minus zero, which preserves every number; the derivative of abs at 0 is 1.
  for (const auto& [x, slope] : slopes)
    result = result - abs(-(stop_gradient(slope) * (x - stop_gradient(x))));
  return result;
}

/// Forward mode: the kernel with an additional argument NAME_tangent for each input and output. It is a buffer like NAME
/// (f32 for 16-bit storage), or a number for a number. The result writes the outputs of the kernel and their tangents.
/// Throws InputError for unknown names and for code that cannot be differentiated.
Kernel tangent(const Kernel& kernel, const Differentiation& which = {});

/// Reverse mode: launches that compute gradients. A cheap handle to shared state, which is immutable except for the
/// tables of index arrays kept between launches. Thread-safe.
class Gradient {
 public:
  /// Parameters of `launch`: the arguments of the kernel except its outputs, NAME_cotangent of each output (read), and
  /// NAME_gradient of each input (written), which has the shape of NAME, or one element for a number. Pass arguments
  /// that the kernel reads and writes with their contents from before the kernel ran.
  std::vector<KernelParameter> parameters() const;
  /// The generated kernels in the order of their launches, for `emit`, Device::supports and Device::prepare.
  std::vector<Kernel> kernels() const;

  struct Options {
    /// Limit of the memory for records of loops, tables of index arrays and exact sums; 0: half of the free memory of
    /// the device.
    int64_t memory_bytes = 0;
    /// If no lane records more than 32 words of 4 bytes for its loops, lanes keep them in local arrays instead of device
    /// memory. false: records are always in device memory. The results are the same.
    bool lane_records = true;
  };
  /// Gradients for the kernel launched over `extent`. Throws InputError for invalid arguments, and if the memory
  /// limit is exceeded.
  void launch(const Device& device, const Shape& extent, const Arguments& arguments, const Options& options,
              const std::source_location& line = std::source_location::current()) const;
  void launch(const Device& device, const Shape& extent, const Arguments& arguments,
              const std::source_location& line = std::source_location::current()) const {
    launch(device, extent, arguments, Options(), line);
  }

  struct State;

 private:
  friend Gradient differentiate(const Kernel& kernel, const Differentiation& which);
  explicit Gradient(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Throws InputError for unknown names and for code that cannot be differentiated.
Gradient differentiate(const Kernel& kernel, const Differentiation& which = {});

/// Whether every lane stores to its own element of the buffer (a name of Kernel::parameters), so that a launch over the
/// buffer's shape leaves nothing of its old contents. False where this is not certain.
bool overwrites(const Kernel& kernel, const std::string& buffer);

/// The same directional derivative by three methods, along one random direction.
struct KernelGradientCheck {
  double forward = 0;            // <cotangent, tangent of the outputs>
  double reverse = 0;            // <gradient, tangent of the inputs>
  double difference = 0;         // `forward` by central differences of the kernel
  double scale = 0;              // sum of the magnitudes of the terms of `forward`
  double norms = 0;              // norm of the cotangents times norm of the directions of the buffers
  std::vector<Array> gradients;  // by reverse mode, in the order of the input parameters
};
/// Compares reverse mode, forward mode and central differences with step `step`, for arguments by the names of the
/// kernel's parameters. The contents of buffers are preserved.
KernelGradientCheck check_gradient(const Device& device, const Kernel& kernel, const Shape& extent,
                                   const Arguments& arguments, const Differentiation& which = {},
                                   uint64_t seed = 1, double step = 1e-6);

struct Case;
/// The gradient of one kernel that a case launches, with respect to all its inputs.
struct GradientRow {
  std::string name, size, kernel;
  KernelGradientCheck check;
  std::optional<KernelGradientCheck> wide;  // of the kernel with f64 instead of narrower floats, if possible
  bool same_bits = false;                   // both devices give the same bits
  bool pass = false;                        // same_bits, and the modes agree
  std::string rejected;                     // reason why there is no gradient, else empty
  std::string left_out;                     // reason why it was not computed, else empty
};
/// Differentiates each kernel that the case launches, at its inputs after the run, on `device` and on `other`.
std::vector<GradientRow> verify_gradients(const Case& c, const std::string& size, const Device& device,
                                          const Device& other, uint64_t seed = 1);

}  // namespace lockstep
