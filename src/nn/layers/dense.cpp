// y = activation(x W + b) over the rows of the last axis.
#include <cmath>

#include "lockstep/primitives.hpp"
#include "nn/layers/common.hpp"
#include "nn/layers/layer.hpp"

namespace lockstep::nn {

namespace {

Shape with_last(Shape shape, int64_t last) {
  shape[shape.rank() - 1] = last;
  return shape;
}

double initial_width(Initial initial, Activation activation, int64_t in, int64_t out) {
  if (initial == Initial::automatic)
    initial =
        activation == Activation::relu || activation == Activation::gelu ? Initial::he : Initial::glorot;
  return std::sqrt(6.0 / double(initial == Initial::he ? in : in + out));
}

class DenseLayer final : public Layer {
 public:
  DenseLayer(const Dense& spec, const LayerPlace& place)
      : Layer(place.input, with_last(place.input, spec.units), place.storage),
        spec_(spec),
        in_(last(place.input)),
        gelu_(spec.activation == Activation::gelu) {
    by_type(storage_, [&]<class T>(T) {
      activate_ = activate_kernel<T>(spec.activation, spec.bias);
      slope_ = slope_kernel<T>(spec.activation);
    });
  }

  std::vector<TensorSpec> tensors() const override {
    std::vector<TensorSpec> list{
        {"weight", {in_, spec_.units}, 0, initial_width(spec_.initial, spec_.activation, in_, spec_.units)}};
    if (spec_.bias) list.push_back({"bias", {spec_.units}, 0, 0});
    return list;
  }

  Buffer forward(const Pass& pass, const Buffer& x) override {
    const int64_t n = rows(input_, pass.examples);
    x_ = x.reshape({n, in_});
    y_ = outputs_.get(pass.device, storage_, {n, spec_.units});
    if (gelu_) derivative_ = slopes_.get(pass.device, storage_, {n, spec_.units});
    const Buffer& product = gelu_ ? derivative_ : y_;
    multiply(pass.device, x_, parameters_[0].reshape({in_, spec_.units}), product);
    const Shape extent{n, spec_.units};
    if (gelu_ && spec_.bias)
      pass.device.launch(activate_, extent, product, parameters_[1], y_);
    else if (gelu_)
      pass.device.launch(activate_, extent, product, y_);
    else if (spec_.bias)
      pass.device.launch(activate_, extent, product, parameters_[1]);
    else if (spec_.activation != Activation::identity)
      pass.device.launch(activate_, extent, product);
    return y_;
  }

  Buffer backward(const Pass& pass, const Buffer& dy, bool input_gradient) override {
    const Device& device = pass.device;
    const int64_t n = rows(input_, pass.examples), units = spec_.units;
    const Buffer dz = dy.reshape({n, units});
    if (spec_.activation != Activation::identity)
      device.launch(slope_, {n, units}, dz, gelu_ ? derivative_ : y_);
    const Buffer turned = turned_.get(device, storage_, {in_, n});
    primitives::transpose(device, x_, turned);
    multiply(device, turned, dz, gradients_[0].reshape({in_, units}));
    if (spec_.bias)
      column_sums(device, dz, sums_.get(device, storage_, {column_scratch(n) * units}), gradients_[1]);
    if (!input_gradient) return {};
    const Buffer weight = turned_weight_.get(device, storage_, {units, in_});
    primitives::transpose(device, parameters_[0].reshape({in_, units}), weight);
    const Buffer dx = input_gradients_.get(device, storage_, {n, in_});
    multiply(device, dz, weight, dx);
    return dx;
  }

 private:
  Dense spec_;
  int64_t in_;
  bool gelu_;
  Kernel activate_, slope_;
  Buffer x_, y_, derivative_;  // of the last forward
  Scratch outputs_, slopes_, turned_, sums_, turned_weight_, input_gradients_;
};

}  // namespace

std::unique_ptr<Layer> make_layer(const Dense& spec, const LayerPlace& place) {
  expect_layer(spec.units > 0, place, "units " + std::to_string(spec.units), "1 or more");
  return std::make_unique<DenseLayer>(spec, place);
}

}  // namespace lockstep::nn
