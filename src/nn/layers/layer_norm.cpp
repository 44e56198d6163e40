// Rows of mean 0 and variance 1, then a gain and a bias for each column.
#include <fmt/format.h>

#include "lockstep/primitives.hpp"
#include "nn/layers/common.hpp"
#include "nn/layers/kernels.hpp"
#include "nn/layers/layer.hpp"

namespace lockstep::nn {

template <class T>
const Kernel& layer_norm_kernel() {
  static const Kernel k = kernel(nn_kernel_name<T>("layer_norm"),
                                 [](At<1> at, Grid<T, 2> x, Grid<T, 1> gain, Grid<T, 1> bias, Out<T, 2> y,
                                    Out<T, 2> normal, Out<T, 1> scale, Param<T> epsilon) {
                                   const Val<i32> row = at.x, columns = x.size(1);
                                   const Val<T> share = T(1) / cast<T>(columns);
                                   Var<T> sum = T(0);
                                   for_(0, columns, [&](Val<i32> j) { sum += x(row, j); });
                                   const Val<T> mean = sum * share;
                                   Var<T> squares = T(0);
                                   for_(0, columns, [&](Val<i32> j) {
                                     const Val<T> apart = x(row, j) - mean;
                                     squares = fma(apart, apart, squares);
                                   });
                                   const Val<T> by = T(1) / sqrt(squares * share + epsilon);
                                   scale[at] = by;
                                   for_(0, columns, [&](Val<i32> j) {
                                     const Val<T> n = (x(row, j) - mean) * by;
                                     normal(row, j) = n;
                                     y(row, j) = fma(n, gain[j], bias[j]);
                                   });
                                 });
  return k;
}
template const Kernel& layer_norm_kernel<f32>();
template const Kernel& layer_norm_kernel<f64>();

template <class T>
const Kernel& layer_norm_adjoint_kernel() {
  static const Kernel k = kernel(
      nn_kernel_name<T>("layer_norm_adjoint"), [](At<1> at, Grid<T, 2> dy, Grid<T, 1> gain, Grid<T, 2> normal,
                                                  Grid<T, 1> scale, Out<T, 2> dx, Out<T, 2> product) {
        const Val<i32> row = at.x, columns = dy.size(1);
        const Val<T> share = T(1) / cast<T>(columns);
        Var<T> sum = T(0), along = T(0);
        for_(0, columns, [&](Val<i32> j) {
          const Val<T> d = dy(row, j) * gain[j], n = normal(row, j);
          sum += d;
          along = fma(d, n, along);
          product(row, j) = dy(row, j) * n;
        });
        const Val<T> mean = sum * share, slope = along * share, by = scale[at];
        for_(0, columns,
             [&](Val<i32> j) { dx(row, j) = by * ((dy(row, j) * gain[j] - mean) - normal(row, j) * slope); });
      });
  return k;
}
template const Kernel& layer_norm_adjoint_kernel<f32>();
template const Kernel& layer_norm_adjoint_kernel<f64>();

namespace {

class NormLayer final : public Layer {
 public:
  NormLayer(const LayerNorm& spec, const LayerPlace& place)
      : Layer(place.input, place.input, place.storage), spec_(spec), columns_(last(place.input)) {}

  std::vector<TensorSpec> tensors() const override {
    return {{"gain", {columns_}, 1, 0}, {"bias", {columns_}, 0, 0}};
  }

  Buffer forward(const Pass& pass, const Buffer& x) override {
    const Shape shape{rows(input_, pass.examples), columns_};
    const Buffer y = outputs_.get(pass.device, storage_, shape);
    normal_ = normals_.get(pass.device, storage_, shape);
    scale_ = scales_.get(pass.device, storage_, {shape[0]});
    by_type(storage_, [&]<class T>(T) {
      pass.device.launch(layer_norm_kernel<T>(), {shape[0]}, x.reshape(shape), parameters_[0], parameters_[1],
                         y, normal_, scale_, double(T(spec_.epsilon)));
    });
    return y;
  }

  Buffer backward(const Pass& pass, const Buffer& dy, bool) override {
    const Shape shape = normal_.shape();
    const Buffer d = dy.reshape(shape), dx = input_gradients_.get(pass.device, storage_, shape),
                 product = products_.get(pass.device, storage_, shape),
                 sums = sums_.get(pass.device, storage_, {column_scratch(shape[0]) * columns_});
    by_type(storage_, [&]<class T>(T) {
      pass.device.launch(layer_norm_adjoint_kernel<T>(), {shape[0]}, d, parameters_[0], normal_, scale_, dx,
                         product);
    });
    column_sums(pass.device, product, sums, gradients_[0]);
    column_sums(pass.device, d, sums, gradients_[1]);
    return dx;
  }

 private:
  LayerNorm spec_;
  int64_t columns_;
  Buffer normal_, scale_;
  Scratch outputs_, normals_, scales_, input_gradients_, products_, sums_;
};

}  // namespace

std::unique_ptr<Layer> make_layer(const LayerNorm& spec, const LayerPlace& place) {
  expect_layer(spec.epsilon > 0, place, fmt::format("epsilon {}", spec.epsilon), "above 0");
  return std::make_unique<NormLayer>(spec, place);
}

}  // namespace lockstep::nn
