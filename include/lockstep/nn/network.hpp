// Feed-forward networks on a device: a description of layers and a loss is compiled to kernels, with parameters and
// gradients in one flat buffer each.
//
//   nn::NetworkSpec spec{.input = {784}, .layers = {nn::Dense{128, nn::Activation::relu}, nn::Dense{10}}};
//   nn::Network network(device, spec, {.seed = 1});
//   network.launch_gradient({images, labels, 64}, loss, step);   // exact adjoints in network.gradient()
//   network.accuracy({images, labels, 2000});
//
// An example is an array of 1 to 3 axes: features (n), a sequence (t, n) or an image (h, w, c), and B of them are
// consecutive. Every sum has an order that depends on sizes only, so CPU, interpreter and CUDA give the
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

/// Cross-correlation of images (h, w, c) with windows of height by width, zeros beyond the edge: (h', w', channels) with
/// h' = (h + 2 padding - height) / stride + 1. Tensors weight (height, width, c, channels) and bias (channels).
struct Conv2d {
  int64_t channels = 0, height = 3, width = 3, stride = 1, padding = 0;
  Activation activation = Activation::identity;
  Initial initial = Initial::automatic;
};

/// Maximum of size by size windows of images (h, w, c), for each channel separately; the first of equal elements
/// receives the gradient. Incomplete windows are dropped.
struct MaxPool2d {
  int64_t size = 2, stride = 2;
};

/// Flattens any shape to one axis.
struct Flatten {};

/// (x - mean) / sqrt(variance + epsilon) gain + bias over the last axis, variance over its length (Ba, Kiros and Hinton
/// 2016); tensors gain, initially 1, and bias.
struct LayerNorm {
  double epsilon = 1e-5;
};

/// Sequences of integers below `vocabulary`, i32 (t), to rows of the table (t, width); with `positions`, a row for
/// each position is added. Tensors table (vocabulary, width), positions (t, width), both normal with standard
/// deviation 0.02. Only as the first layer; other numbers give NaN.
struct Embedding {
  int64_t vocabulary = 0, width = 0;
  bool positions = false;
};

/// During training, sets a share `rate` of the elements to 0 and divides the others by 1 - rate. The selection
/// follows from the seed, the layer and the step.
struct Dropout {
  double rate = 0.5;
};

/// Position of the reset gate: on the state before the product (Cho et al. 2014) or on the product (cuDNN, PyTorch).
enum class GruForm : uint8_t { reset_before, reset_after };

/// Sequences (t, in) to states (t, units), from a state of 0: z = sigmoid(x W_z + h U_z + b_z), r = sigmoid(x W_r + h U_r +
/// b_r). reset_before: n = tanh(x W_n + (r h) U_n + b_n), h' = (1 - z) h + z n. reset_after, with recurrent biases c added to
/// each product with U: n = tanh(x W_n + b_n + r (h U_n + c_n)), h' = (1 - z) n + z h. Tensors weight (in, 3 units), bias
/// (3 units), recurrent (units, 3 units), for reset_after recurrent_bias (3 units), in the order z, r, n.
struct Gru {
  int64_t units = 0;
  GruForm form = GruForm::reset_before;
};

/// Self-attention of sequences (t, c) in `heads` heads of c / heads, softmax(q k / sqrt(c / heads)) v over positions
/// up to the current one, or over all (Vaswani et al. 2017). Tensors qkv.weight (c, 3 c), qkv.bias, out.weight (c,
/// c), out.bias.
struct Attention {
  int64_t heads = 1;
  bool causal = true;
};

struct LayerSpec;
/// x + f(x), where f is the layers in order, which preserve the shape.
struct Residual {
  std::vector<LayerSpec> layers;
};

using LayerVariant =
    std::variant<Dense, Conv2d, MaxPool2d, Flatten, LayerNorm, Embedding, Dropout, Gru, Attention, Residual>;
struct LayerSpec : LayerVariant {
  using LayerVariant::LayerVariant;
  const LayerVariant& variant() const { return *this; }
};

/// Outputs are rows along the last axis.
enum class Loss : uint8_t {
  cross_entropy,  // targets i32, one class per row: mean over rows of -log softmax(y)[class]
  mean_squared,   // targets of the outputs' storage and count: mean over elements of (y - t)^2
  two_hot,        // targets of the outputs' storage, one number per row: cross-entropy with two adjacent bins
};
std::string_view name(Loss loss);

struct NetworkSpec {
  Shape input;  // of one example
  std::vector<LayerSpec> layers;
  Loss loss = Loss::cross_entropy;
};

/// The bins of two_hot are symexp(s) = sign(s) (exp|s| - 1) of equally spaced s from -kTwoHotLimit to kTwoHotLimit.
/// The two bins of a target are weighted so that their mean is the target; targets beyond the range use the last bin
/// (Hafner et al. 2025, DreamerV3).
inline constexpr double kTwoHotLimit = 20;
/// values[row] = the mean of the bins under softmax(outputs[row]); outputs (rows, bins).
void two_hot_values(const Device& device, const Buffer& outputs, const Buffer& values);

struct NetworkOptions {
  Storage storage = Storage::f32;  // or f64
  uint64_t seed = 1;               // of initial parameters and random draws
};

/// Activations are kept between calls, sized by the largest batch so far; not thread-safe.
class Network final : public TrainableModel {
 public:
  /// Initialises the parameters. Throws InputError, with the layer, for sizes that do not fit.
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
  /// Shape of the outputs of one example; the last axis is that of the classes of cross_entropy.
  const Shape& output_shape() const;
  /// Outputs (rows, last axis) of `count` examples, without dropout, in a buffer that the next call overwrites.
  Buffer launch_outputs(const Buffer& inputs, int64_t count);
  /// Share of rows whose largest output (the first of equal ones) is the target's; waits. Throws InputError if
  /// targets are not classes.
  double accuracy(const Batch& batch);

  const NetworkSpec& spec() const;
  const NetworkOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Initialises the parameters from a seed, as the constructor does. Equal on every machine.
std::vector<double> initial_parameters(const NetworkSpec& spec, uint64_t seed);
int64_t parameter_count(const NetworkSpec& spec);

}  // namespace lockstep::nn
