// Convolution as a dense layer over patches: a row of the patch matrix holds one window, its adjoint gathers from all
// windows that hold a pixel, in the order of their place in the window.
#include <fmt/format.h>

#include "device/cached_kernel.hpp"
#include "nn/layers/common.hpp"
#include "nn/layers/kernels.hpp"
#include "nn/layers/layer.hpp"
#include "nn/layers/windows.hpp"

namespace lockstep::nn {

template <class T>
Kernel patches_kernel(const Windows& w) {
  return cached_kernel("nn.patches" + w.key(sizeof(T)), [&] {
    return kernel(nn_kernel_name<T>("patches" + w.text()), [&](At<2> at, Grid<T, 2> image,
                                                               Out<T, 2> patches) {
      const Val<i32> row = at.y, place = at.x;
      const Val<i32> channel = place % i32(w.channels), cell = place / i32(w.channels);
      const Val<i32> ox = row % i32(w.out_width), oy = row / i32(w.out_width) % i32(w.out_height);
      const Val<i32> example = row / i32(w.out_width * w.out_height);
      const Val<i32> x = ox * i32(w.stride) + cell % i32(w.window_width) - i32(w.padding);
      const Val<i32> y = oy * i32(w.stride) + cell / i32(w.window_width) - i32(w.padding);
      const Val<bool> inside = x >= 0 && x < i32(w.width) && y >= 0 && y < i32(w.height);
      const Val<i32> cx = clamp(x, 0, i32(w.width) - 1), cy = clamp(y, 0, i32(w.height) - 1);
      patches[at] = select(inside, image((example * i32(w.height) + cy) * i32(w.width) + cx, channel), T(0));
    });
  });
}
template Kernel patches_kernel<f32>(const Windows&);
template Kernel patches_kernel<f64>(const Windows&);

template <class T>
Kernel patches_adjoint_kernel(const Windows& w) {
  return cached_kernel("nn.patches_adjoint" + w.key(sizeof(T)), [&] {
    return kernel(nn_kernel_name<T>("patches_adjoint" + w.text()),
                  [&](At<2> at, Grid<T, 2> patches, Out<T, 2> image) {
                    Var<T> sum = T(0);
                    for_windows_of(w, at.y, [&](const Val<i32>& row, const Val<i32>& place) {
                      sum += patches(row, place * i32(w.channels) + at.x);
                    });
                    image[at] = sum;
                  });
  });
}
template Kernel patches_adjoint_kernel<f32>(const Windows&);
template Kernel patches_adjoint_kernel<f64>(const Windows&);

std::string Windows::text() const {
  return fmt::format(".{}x{}x{}.{}x{}.stride{}.padding{}", height, width, channels, window_height,
                     window_width, stride, padding);
}
std::string Windows::key(size_t element) const { return fmt::format("{} {}", text(), element); }

Windows make_windows(const Shape& image, int64_t height, int64_t width, int64_t stride, int64_t padding,
                     const LayerPlace& place) {
  expect_layer(image.rank() == 3, place, "input " + to_string(image), "an image (h, w, c)");
  expect_layer(height > 0 && width > 0 && stride > 0 && padding >= 0, place,
               fmt::format("window {}x{}, stride {}, padding {}", height, width, stride, padding),
               "sizes above 0, padding 0 or more");
  expect_layer(image[0] + 2 * padding >= height && image[1] + 2 * padding >= width, place,
               fmt::format("window {}x{} on {}", height, width, to_string(image)), "one that fits");
  return {image[0],
          image[1],
          image[2],
          height,
          width,
          stride,
          padding,
          (image[0] + 2 * padding - height) / stride + 1,
          (image[1] + 2 * padding - width) / stride + 1};
}

namespace {

class ConvLayer final : public Layer {
 public:
  ConvLayer(const Conv2d& spec, const Windows& windows, const LayerPlace& place)
      : Layer(place.input, {windows.out_height, windows.out_width, spec.channels}, place.storage),
        w_(windows) {
    LayerPlace inner = place;
    inner.input = {w_.out_height * w_.out_width, w_.window_height * w_.window_width * w_.channels};
    dense_ = make_layer(Dense{spec.channels, spec.activation, true, spec.initial}, inner);
    by_type(storage_, [&]<class T>(T) {
      patches_ = patches_kernel<T>(w_);
      adjoint_ = patches_adjoint_kernel<T>(w_);
    });
  }

  std::vector<TensorSpec> tensors() const override {
    std::vector<TensorSpec> list = dense_->tensors();
    list[0].shape = {w_.window_height, w_.window_width, w_.channels, output_[2]};
    return list;
  }
  void bind(std::span<const Buffer> parameters, std::span<const Buffer> gradients) override {
    dense_->bind(parameters, gradients);
  }

  Buffer forward(const Pass& pass, const Buffer& x) override {
    const int64_t places = dense_->input()[0] * pass.examples, length = dense_->input()[1];
    const Buffer patches = unfolded_.get(pass.device, storage_, {places, length});
    pass.device.launch(patches_, {places, length},
                       x.reshape({pass.examples * w_.height * w_.width, w_.channels}), patches);
    return dense_->forward(pass, patches);
  }

  Buffer backward(const Pass& pass, const Buffer& dy, bool input_gradient) override {
    const Buffer d = dense_->backward(pass, dy, input_gradient);
    if (!input_gradient) return {};
    const Shape pixels{pass.examples * w_.height * w_.width, w_.channels};
    const Buffer dx = input_gradients_.get(pass.device, storage_, pixels);
    pass.device.launch(adjoint_, pixels, d, dx);
    return dx;
  }

 private:
  Windows w_;
  std::unique_ptr<Layer> dense_;
  Kernel patches_, adjoint_;
  Scratch unfolded_, input_gradients_;
};

}  // namespace

std::unique_ptr<Layer> make_layer(const Conv2d& spec, const LayerPlace& place) {
  expect_layer(spec.channels > 0, place, fmt::format("channels {}", spec.channels), "1 or more");
  return std::make_unique<ConvLayer>(
      spec, make_windows(place.input, spec.height, spec.width, spec.stride, spec.padding, place), place);
}

}  // namespace lockstep::nn
