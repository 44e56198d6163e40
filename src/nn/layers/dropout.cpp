// Dropout by counters, and the residual sum of layers.
#include <fmt/format.h>

#include "core/numbers/random.hpp"
#include "lockstep/primitives.hpp"
#include "nn/layers/common.hpp"
#include "nn/layers/kernels.hpp"
#include "nn/layers/layer.hpp"

namespace lockstep::nn {

template <class T>
const Kernel& dropout_kernel() {
  static const Kernel k = kernel(
      nn_kernel_name<T>("dropout"), [](At<1> at, Grid<T, 1> x, Out<T, 1> y, Param<u32> step, Param<u32> key,
                                       Param<u32> threshold, Param<T> scale, Param<u32> first) {
        const Val<u32> bits =
            philox<Val<u32>>(first + cast<u32>(Val<i32>(at.x)), step, key,
                             [](const Val<u32>& a, const Val<u32>& b) { return umulhi(a, b); });
        y[at] = select(bits >= threshold, x[at] * scale, T(0));
      });
  return k;
}
template const Kernel& dropout_kernel<f32>();
template const Kernel& dropout_kernel<f64>();

namespace {

class DropoutLayer final : public Layer {
 public:
  DropoutLayer(const Dropout& spec, const LayerPlace& place)
      : Layer(place.input, place.input, place.storage),
        rate_(spec.rate),
        seed_(place.seed),
        number_(place.number) {}

  Buffer forward(const Pass& pass, const Buffer& x) override {
    return pass.training ? dropped(pass, x, outputs_) : x;
  }
  Buffer backward(const Pass& pass, const Buffer& dy, bool input_gradient) override {
    return input_gradient ? dropped(pass, dy, input_gradients_) : Buffer{};
  }

 private:
  Buffer dropped(const Pass& pass, const Buffer& x, Scratch& memory) const {
    if (rate_ == 0) return x;
    const int64_t n = x.elements();
    const Buffer y = memory.get(pass.device, storage_, {n});
    const uint32_t key = random_key(seed_ ^ (pass.step >> 32), (uint64_t(1) << 40) + number_);
    by_type(storage_, [&]<class T>(T) {
      pass.device.launch(dropout_kernel<T>(), {n}, x.reshape({n}), y, uint32_t(pass.step), key,
                         uint32_t(rate_ * 0x1p32), double(T(1 / (1 - rate_))),
                         uint32_t(pass.first * input_.elements()));
    });
    return y;
  }

  double rate_;
  uint64_t seed_, number_;
  mutable Scratch outputs_, input_gradients_;
};

class ResidualLayer final : public Layer {
 public:
  ResidualLayer(std::vector<std::unique_ptr<Layer>> layers, std::vector<std::string> names,
                const LayerPlace& place)
      : Layer(place.input, place.input, place.storage),
        layers_(std::move(layers)),
        names_(std::move(names)) {}

  std::vector<TensorSpec> tensors() const override {
    std::vector<TensorSpec> list;
    for (size_t k = 0; k < layers_.size(); ++k)
      for (TensorSpec& t : layers_[k]->tensors()) {
        t.name = names_[k] + "." + t.name;
        list.push_back(std::move(t));
      }
    return list;
  }
  void bind(std::span<const Buffer> parameters, std::span<const Buffer> gradients) override {
    size_t at = 0;
    for (const auto& layer : layers_) {
      const size_t count = layer->tensors().size();
      layer->bind(parameters.subspan(at, count), gradients.subspan(at, count));
      at += count;
    }
  }

  Buffer forward(const Pass& pass, const Buffer& x) override {
    const Buffer y = outputs_.get(pass.device, storage_, {x.elements()});
    Buffer inner = x;
    for (const auto& layer : layers_) inner = layer->forward(pass, inner);
    pass.device.copy(x.reshape(y.shape()), y);
    primitives::axpy(pass.device, 1, inner.reshape(y.shape()), y);
    return y;
  }
  Buffer backward(const Pass& pass, const Buffer& dy, bool input_gradient) override {
    const Buffer sum = input_gradients_.get(pass.device, storage_, {dy.elements()});
    pass.device.copy(dy.reshape(sum.shape()), sum);  // layers may overwrite dy
    Buffer inner = dy;
    for (size_t k = layers_.size(); k-- > 0;)
      inner = layers_[k]->backward(pass, inner, input_gradient || k > 0);
    if (!input_gradient) return {};
    primitives::axpy(pass.device, 1, inner.reshape(sum.shape()), sum);
    return sum;
  }

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::string> names_;
  Scratch outputs_, input_gradients_;
};

}  // namespace

std::unique_ptr<Layer> make_layer(const Dropout& spec, const LayerPlace& place) {
  expect_layer(spec.rate >= 0 && spec.rate < 1, place, fmt::format("rate {}", spec.rate),
               "0 or more, below 1");
  return std::make_unique<DropoutLayer>(spec, place);
}

std::unique_ptr<Layer> make_layer(const Residual& spec, const LayerPlace& place) {
  constexpr uint64_t kMost = 64;
  expect_layer(!spec.layers.empty() && spec.layers.size() < kMost, place,
               fmt::format("{} layers", spec.layers.size()), "1 to 63");
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<std::string> names;
  LayerPlace inner = place;
  for (size_t k = 0; k < spec.layers.size(); ++k) {
    expect_layer(!std::holds_alternative<Embedding>(spec.layers[k].variant()), place, "an embedding inside",
                 "one as the first layer of the network only");
    names.push_back(fmt::format("{}{}", kind_name(spec.layers[k]), k + 1));
    inner.where = place.where + "." + names.back();
    inner.number = place.number * kMost + k + 1;
    layers.push_back(make_layer(spec.layers[k], inner));
    inner.input = layers.back()->output();
  }
  expect_layer(inner.input == place.input, place,
               "layers from " + to_string(place.input) + " to " + to_string(inner.input), "one shape");
  return std::make_unique<ResidualLayer>(std::move(layers), std::move(names), place);
}

}  // namespace lockstep::nn
