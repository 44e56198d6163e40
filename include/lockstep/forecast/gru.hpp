// Gated recurrent units over sequences, forward and backward through time, on a device.
//
//   forecast::GruSequence gru(device, {.form = forecast::GruForm::reset_after, .steps = 20, .batch = 8, .inputs = 3, .hidden = 32});
//   gru.set_weights(weights);
//   gru.forward(x, h0);              // gru.states()
//   gru.backward(d_states);          // gru.gradients(), d_x(), d_h0()
//
// T steps, B sequences, I inputs, D hidden units of any number, in f32 or f64. In f32, U may be stored in bf16 or fp8.
// rollout.hpp defines the forms. The order of every sum depends on sizes only, so results are bit-identical on the CPU,
// the interpreter and CUDA.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/forecast/rollout.hpp"

namespace lockstep::forecast {

/// Weights of x W + b and h U + rb, with the gates next to each other in the order z, r, n.
struct GruWeights {
  Array w;   // (I, 3 D)
  Array u;   // (D, 3 D)
  Array b;   // (3 D)
  Array rb;  // (3 D), of reset_after; empty: 0
};

/// The weights with U rounded to `type`. fp8 has one scale per column of U. Throws InputError, naming `where`, for
/// weights that are not f32 and for a weight that rounds to infinity.
GruWeights round_weights(const GruWeights& weights, WeightType type,
                         std::string_view where = "round_weights");

/// Converts the weights of PyTorch's nn.GRU with one layer and one direction: weight_ih (3 D, I), weight_hh (3 D, D),
/// bias_ih and bias_hh (3 D), with the gates in the order r, z, n. Biases may be empty. Throws InputError, naming the
/// array, if shapes or types disagree.
GruWeights weights_of_torch(const Array& weight_ih, const Array& weight_hh, const Array& bias_ih,
                            const Array& bias_hh);
/// Reads layer `layer` from a file (.npz, .safetensors) with the names of PyTorch (weight_ih_l0 …). `prefix`, such as
/// "encoder.", precedes the names. Throws InputError for an invalid file and missing arrays.
GruWeights load_torch_gru(const std::filesystem::path& path, int layer = 0, const std::string& prefix = {});

struct GruShape {
  GruForm form = GruForm::reset_before;
  int64_t steps = 1, batch = 1, inputs = 1, hidden = 1;
  Storage storage = Storage::f32;
  /// Storage type of U; all else is f32. States and gradients are bit-identical to the f32 sequence of
  /// round_weights().
  WeightType weights = WeightType::f32;
  bool backward = true;  // false: no memory for backward(), which then throws InputError
  /// A variant of `forecast.gru` (docs/design/variants.md): rows or products, which differ in the order of sums. Empty:
  /// chosen by the number of sequences.
  std::string variant{};
};

/// Bytes on the device, computed before allocation; buffers of the caller are not included.
struct GruMemory {
  int64_t weights = 0, state = 0, gradients = 0;  // gradients: memory of backward()
  int64_t total() const { return weights + state + gradients; }
};

/// A GRU over sequences. Launches use the default stream. Each function returns the same buffer in every call.
class GruSequence {
 public:
  /// Throws InputError for sizes below 1, storage types other than f32 and f64, and narrow weights with f64.
  GruSequence(const Device& device, const GruShape& shape);
  /// The same with weights and gradients in buffers of the caller, (parameter_count) each: W, U, b and, for reset_after,
  /// rb. Throws InputError for bf16 and fp8 weights, too.
  GruSequence(const Device& device, const GruShape& shape, const Buffer& weights, const Buffer& gradients);
  static int64_t parameter_count(const GruShape& shape);
  ~GruSequence();
  GruSequence(GruSequence&&) noexcept;
  GruSequence& operator=(GruSequence&&) noexcept;

  /// Sets the weights, and rounds U from f32 if it is stored in bf16 or fp8. Throws InputError if shapes or types do not
  /// fit, and for recurrent biases with reset_before.
  void set_weights(const GruWeights& weights);
  /// Computes states() (T + 1, B, D), which begin with h0, from x (T, B, I) and h0 (B, D).
  void forward(const Buffer& x, const Buffer& h0);
  Buffer states() const;
  /// Computes the gradients of the sum of states[t + 1] d_states[t] for d_states (T, B, D), after forward() of the same
  /// x. The gradient that a step passes to the previous one is multiplied by `decay`. With U in bf16 or fp8, gradients
  /// are evaluated at the rounded U. An optimiser that keeps U in f32 may apply them and set the weights again.
  void backward(const Buffer& d_states, double decay = 1);
  /// Gradients of the weights, as in GruWeights; rb for reset_after.
  struct Gradients {
    Buffer w, u, b, rb;
  };
  Gradients gradients() const;
  Buffer d_x() const;               // (T, B, I)
  Buffer d_h0() const;              // (B, D)
  const GruMemory& memory() const;  // predicted; equal to the bytes allocated
  std::vector<Kernel> kernels() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::forecast
