// A layer bound to a device: forward, and backward by the exact adjoint.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/nn/network.hpp"

namespace lockstep::nn {

/// One evaluation of a batch.
struct Pass {
  const Device& device;
  int64_t examples = 0;
  bool training = false;  // dropout acts
  uint64_t step = 0;      // numbers its draws
  int64_t first = 0;      // place of the first example in its batch, whose draws are numbered by element
};

/// A tensor of parameters, initially uniform in centre ± width.
struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;
  double centre = 0, width = 0;
  int64_t size() const {
    int64_t n = 1;
    for (const int64_t extent : shape) n *= extent;
    return n;
  }
};

/// Memory of a layer that grows to what is requested.
class Scratch {
 public:
  Buffer get(const Device& device, Storage storage, const Shape& shape) {
    const int64_t n = shape.elements();
    if (!memory_ || memory_.elements() < n || memory_.storage() != storage)
      memory_ = device.allocate(storage, {n});
    return memory_.rows(0, n).reshape(shape);
  }

 private:
  Buffer memory_;
};

class Layer {
 public:
  Layer(const Shape& input, const Shape& output, Storage storage)
      : input_(input), output_(output), storage_(storage) {}
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// Shapes of one example.
  const Shape& input() const { return input_; }
  const Shape& output() const { return output_; }

  virtual std::vector<TensorSpec> tensors() const { return {}; }
  /// Windows (size) of the flat buffers, in the order of tensors().
  virtual void bind(std::span<const Buffer> parameters, std::span<const Buffer> gradients);
  /// `x` holds pass.examples inputs; so many outputs come back in memory of the layer's. Both are contiguous, of any
  /// shape, and stay as they are until backward() has run.
  virtual Buffer forward(const Pass& pass, const Buffer& x) = 0;
  /// Writes the gradients of the layer's tensors and, where requested, gives that of the last forward's input;
  /// `dy` may be overwritten.
  virtual Buffer backward(const Pass& pass, const Buffer& dy, bool input_gradient) = 0;

 protected:
  /// Length of the last axis, and rows of it that `examples` inputs or outputs have.
  static int64_t last(const Shape& shape) { return shape[shape.rank() - 1]; }
  static int64_t rows(const Shape& shape, int64_t examples) {
    return examples * (shape.elements() / last(shape));
  }

  Shape input_, output_;
  Storage storage_;
  std::vector<Buffer> parameters_, gradients_;
};

/// The place of a layer in its network; `where` names it in errors and tensors ("layer2.dense").
struct LayerPlace {
  std::string where;
  Shape input;
  Storage storage = Storage::f32;
  uint64_t seed = 0;
  uint64_t number = 0;  // differs from layer to layer
};

std::unique_ptr<Layer> make_layer(const Dense& spec, const LayerPlace& place);
std::unique_ptr<Layer> make_layer(const Conv2d& spec, const LayerPlace& place);
std::unique_ptr<Layer> make_layer(const MaxPool2d& spec, const LayerPlace& place);
std::unique_ptr<Layer> make_layer(const Flatten& spec, const LayerPlace& place);
std::unique_ptr<Layer> make_layer(const LayerNorm& spec, const LayerPlace& place);
std::unique_ptr<Layer> make_layer(const Embedding& spec, const LayerPlace& place);
std::unique_ptr<Layer> make_layer(const Dropout& spec, const LayerPlace& place);
std::unique_ptr<Layer> make_layer(const Gru& spec, const LayerPlace& place);
std::unique_ptr<Layer> make_layer(const Attention& spec, const LayerPlace& place);
std::unique_ptr<Layer> make_layer(const Residual& spec, const LayerPlace& place);
std::unique_ptr<Layer> make_layer(const LayerSpec& spec, const LayerPlace& place);
std::string_view kind_name(const LayerSpec& spec);
/// Throws InputError, naming the layer, where `good` is false.
void expect_layer(bool good, const LayerPlace& place, const std::string& what, const char* expected);

}  // namespace lockstep::nn
