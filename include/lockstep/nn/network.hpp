// Feed-forward networks on a device: a description of layers and a loss becomes kernels, with parameters and
// gradients in one flat buffer each.
//
//   nn::NetworkSpec spec{.input = {784}, .layers = {nn::Dense{128, nn::Activation::relu}, nn::Dense{10}}};
//   nn::Network network(device, spec, {.seed = 1});
//   network.launch_gradient({images, labels, 64}, loss, step);   // exact adjoints in network.gradient()
//   network.accuracy({images, labels, 2000});
//
// An example is an array of 1 to 3 axes: features (n), a sequence (t, n) or an image (h, w, c), and B of them stand
// one after the other. Every sum has an order that depends on sizes only, so CPU, interpreter and CUDA give the
// same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/nn/model.hpp"

namespace lockstep::nn {

/// gelu is x Phi(x) with the normal distribution function (Hendrycks and Gimpel 2016), not its tanh approximation.
enum class Activation : uint8_t { identity, tanh, relu, gelu, sigmoid };
std::string_view name(Activation activation);
/// Throws InputError for an unknown name.
Activation parse_activation(std::string_view text);

/// Uniform in (-a, a): glorot a = sqrt(6 / (in + out)), he a = sqrt(6 / in). automatic: he for relu and gelu,
/// else glorot.
enum class Initial : uint8_t { automatic, glorot, he };

/// y = activation(x W + b) along the last axis; tensors weight (in, units) and bias (units).
struct Dense {
  int64_t units = 0;
  Activation activation = Activation::identity;
  bool bias = true;
  Initial initial = Initial::automatic;
};

struct LayerSpec : std::variant<Dense> {
  using variant::variant;
};

/// Outputs are rows: those of the last axis.
enum class Loss : uint8_t {
  cross_entropy,  // targets i32, a class a row: mean over rows of -log softmax(y)[class]
  mean_squared,   // targets of the outputs' storage and count: mean over elements of (y - t)^2
};
std::string_view name(Loss loss);

struct NetworkSpec {
  Shape input;  // of one example
  std::vector<LayerSpec> layers;
  Loss loss = Loss::cross_entropy;
};

struct NetworkOptions {
  Storage storage = Storage::f32;  // or f64
  uint64_t seed = 1;               // of initial parameters and random draws
};

/// Activations are kept between calls, sized by the largest batch so far; one thread at a time.
class Network final : public TrainableModel {
 public:
  /// Parameters are initialised. Throws InputError, with the layer, for sizes that do not fit.
  Network(const Device& device, const NetworkSpec& spec, const NetworkOptions& options = {});
  ~Network() override;
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  const Device& device() const override;
  std::span<const ParameterTensor> tensors() const override;
  Buffer parameters() const override;
  Buffer gradient() const override;
  /// `loss` has one element of the parameters' storage. Throws InputError for a batch of other shape or storage.
  void launch_loss(const Batch& batch, const Buffer& loss) override;
  void launch_gradient(const Batch& batch, const Buffer& loss, uint64_t step) override;

  /// Storage of Batch::inputs and Batch::targets.
  Storage input_storage() const;
  Storage target_storage() const;
  /// Shape of one example's outputs; their last axis are the classes of cross_entropy.
  const Shape& output_shape() const;
  /// Outputs (rows, last axis) of `count` examples, without dropout, in a buffer that the next call overwrites.
  Buffer launch_outputs(const Buffer& inputs, int64_t count);
  /// Share of rows whose largest output (of equal ones the first) is the target's; waits. Throws InputError where
  /// targets are no classes.
  double accuracy(const Batch& batch);

  const NetworkSpec& spec() const;
  const NetworkOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Parameters anew from a seed: what the constructor does. The same on every machine.
std::vector<double> initial_parameters(const NetworkSpec& spec, uint64_t seed);

}  // namespace lockstep::nn
