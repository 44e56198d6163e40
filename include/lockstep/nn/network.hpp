// Networks on a device: a description of layers and a loss is compiled to kernels. Parameters and gradient are one flat
// buffer each.
//
//   nn::NetworkSpec spec{.input = {784}, .layers = {nn::Dense{128, nn::Activation::relu}, nn::Dense{10}}};
//   nn::Network network(device, spec, {.seed = 1});
//   network.launch_gradient({images, labels, 64}, loss, step);   // exact adjoints in network.gradient()
//   network.accuracy({images, labels, 2000});
//
// An example is an array of 1 to 3 axes: features (n), a sequence (t, n) or an image (h, w, c). The examples of a batch
// are stored one after the other. The order of every sum depends on sizes only, so the CPU, the interpreter and CUDA
// give the same bits.
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

/// Initial weights, uniform in (-a, a). glorot: a = sqrt(6 / (in + out)) (Glorot and Bengio 2010). he: a = sqrt(6 / in)
/// (He et al. 2015). automatic: he for relu and gelu, otherwise glorot.
enum class Initial : uint8_t { automatic, glorot, he };

/// y = activation(x W + b) along the last axis; tensors weight (in, units) and bias (units).
struct Dense {
  int64_t units = 0;
  Activation activation = Activation::identity;
  bool bias = true;
  Initial initial = Initial::automatic;
};

/// Cross-correlation of images (h, w, c) with windows of height by width, with zeros beyond the edge. The result is
/// (h', w', channels) with h' = floor((h + 2 padding - height) / stride) + 1. Tensors weight (height, width, c, channels)
/// and bias (channels).
struct Conv2d {
  int64_t channels = 0, height = 3, width = 3, stride = 1, padding = 0;
  Activation activation = Activation::identity;
  Initial initial = Initial::automatic;
};

/// Maximum of size by size windows of images (h, w, c), for each channel separately. The first of equal elements
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

/// Maps sequences (t) of integers, i32 from 0 to vocabulary - 1, to rows of the table (t, width). With `positions`, a row
/// for each position is added. Tensors table (vocabulary, width) and positions (t, width), both initially uniform with
/// standard deviation 0.02. Must be the first layer. Integers out of range give NaN.
struct Embedding {
  int64_t vocabulary = 0, width = 0;
  bool positions = false;
};

/// During training, sets each element to 0 with probability `rate` and divides the others by 1 - rate (Srivastava et al.
/// 2014). The selection depends on the seed, the layer and the step only.
struct Dropout {
  double rate = 0.5;
};

/// The reset gate multiplies the state before the product (Cho et al. 2014) or the product (cuDNN, PyTorch).
enum class GruForm : uint8_t { reset_before, reset_after };

/// Maps sequences (t, in) to states (t, units), from the state 0, by a gated recurrent unit:
/// z = sigmoid(x W_z + h U_z + b_z), r = sigmoid(x W_r + h U_r + b_r).
/// reset_before: n = tanh(x W_n + (r h) U_n + b_n), h' = (1 - z) h + z n.
/// reset_after: n = tanh(x W_n + b_n + r (h U_n + c_n)), h' = (1 - z) n + z h. Recurrent biases c are added to each
/// product with U.
/// Tensors weight (in, 3 units), bias (3 units), recurrent (units, 3 units) and, for reset_after, recurrent_bias
/// (3 units), with the gates in the order z, r, n.
struct Gru {
  int64_t units = 0;
  GruForm form = GruForm::reset_before;
};

/// Self-attention of sequences (t, c) in `heads` heads of width c / heads: softmax(q k / sqrt(c / heads)) v (Vaswani et
/// al. 2017). The softmax is over the positions up to the current one if `causal`, otherwise over all positions. Tensors
/// qkv.weight (c, 3 c), qkv.bias (3 c), out.weight (c, c), out.bias (c).
struct Attention {
  int64_t heads = 1;
  bool causal = true;
};

struct LayerSpec;
/// x + f(x), where f applies the layers in order. Together they must preserve the shape.
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
  cross_entropy,  // mean over rows of -log softmax(y)[class]; targets: i32, one class per row
  mean_squared,   // mean over elements of (y - t)^2; targets: storage and number of the outputs
  two_hot,        // cross-entropy with two adjacent bins; targets: storage of the outputs, one number per row
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

/// A network with its parameters. Memory for activations is kept between calls and grows to the largest batch so far.
/// Not thread-safe.
class Network final : public TrainableModel {
 public:
  /// Initialises the parameters. Throws InputError, naming the layer, for sizes that do not fit.
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
  /// Outputs (rows, last axis) of `count` examples, without dropout. The next call overwrites the buffer.
  Buffer launch_outputs(const Buffer& inputs, int64_t count);
  /// Share of rows whose largest output (the first of equal ones) is that of the target class. Waits. Throws InputError
  /// if targets are not classes.
  double accuracy(const Batch& batch);

  const NetworkSpec& spec() const;
  const NetworkOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The initial parameters for a seed, as set by the constructor. They are the same on every computer.
std::vector<double> initial_parameters(const NetworkSpec& spec, uint64_t seed);
int64_t parameter_count(const NetworkSpec& spec);

}  // namespace lockstep::nn
