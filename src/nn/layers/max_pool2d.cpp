// Largest of windows; the adjoint gathers from the windows that hold a pixel.
#include <fmt/format.h>

#include "device/cached_kernel.hpp"
#include "nn/layers/common.hpp"
#include "nn/layers/kernels.hpp"
#include "nn/layers/layer.hpp"
#include "nn/layers/windows.hpp"

namespace lockstep::nn {

template <class T>
Kernel max_pool_kernel(const Windows& w) {
  return cached_kernel("nn.max_pool" + w.key(sizeof(T)), [&] {
    return kernel(nn_kernel_name<T>("max_pool" + w.text()), [&](At<2> at, Grid<T, 2> image, Out<T, 2> most,
                                                                Out<i32, 2> place) {
      const Val<i32> row = at.y, channel = at.x;
      const Val<i32> ox = row % i32(w.out_width), oy = row / i32(w.out_width) % i32(w.out_height);
      const Val<i32> example = row / i32(w.out_width * w.out_height);
      const auto pixel = [&](const Val<i32>& wy, const Val<i32>& wx) {
        const Val<i32> y = oy * i32(w.stride) + wy, x = ox * i32(w.stride) + wx;
        return Val<T>(image((example * i32(w.height) + y) * i32(w.width) + x, channel));
      };
      Var<T> largest = pixel(0, 0);
      Var<i32> best = 0;
      for (int wy = 0; wy < int(w.window_height); ++wy)
        for (int wx = wy == 0 ? 1 : 0; wx < int(w.window_width); ++wx) {
          const Val<T> here = pixel(wy, wx);
          // A NaN is the largest of all, so that it shows.
          const Val<bool> more = here > largest || (here != here && largest == largest);
          best = select(more, Val<i32>(wy * int(w.window_width) + wx), best);
          largest = select(more, here, largest);
        }
      most[at] = largest;
      place[at] = best;
    });
  });
}
template Kernel max_pool_kernel<f32>(const Windows&);
template Kernel max_pool_kernel<f64>(const Windows&);

template <class T>
Kernel max_pool_adjoint_kernel(const Windows& w) {
  return cached_kernel("nn.max_pool_adjoint" + w.key(sizeof(T)), [&] {
    return kernel(nn_kernel_name<T>("max_pool_adjoint" + w.text()),
                  [&](At<2> at, Grid<T, 2> d, Grid<i32, 2> place, Out<T, 2> image) {
                    Var<T> sum = T(0);
                    for_windows_of(w, at.y, [&](const Val<i32>& row, const Val<i32>& in_window) {
                      if_(place(row, at.x) == in_window, [&] { sum += d(row, at.x); });
                    });
                    image[at] = sum;
                  });
  });
}
template Kernel max_pool_adjoint_kernel<f32>(const Windows&);
template Kernel max_pool_adjoint_kernel<f64>(const Windows&);

namespace {

class PoolLayer final : public Layer {
 public:
  PoolLayer(const Windows& w, const LayerPlace& place)
      : Layer(place.input, {w.out_height, w.out_width, w.channels}, place.storage), w_(w) {
    by_type(storage_, [&]<class T>(T) {
      pool_ = max_pool_kernel<T>(w);
      adjoint_ = max_pool_adjoint_kernel<T>(w);
    });
  }

  Buffer forward(const Pass& pass, const Buffer& x) override {
    const Shape places{pass.examples * w_.out_height * w_.out_width, w_.channels};
    const Buffer y = outputs_.get(pass.device, storage_, places);
    chosen_ = chosen_memory_.get(pass.device, Storage::i32, places);
    pass.device.launch(pool_, places, x.reshape(pixels(pass)), y, chosen_);
    return y;
  }
  Buffer backward(const Pass& pass, const Buffer& dy, bool input_gradient) override {
    if (!input_gradient) return {};
    const Buffer dx = input_gradients_.get(pass.device, storage_, pixels(pass));
    pass.device.launch(adjoint_, pixels(pass), dy.reshape(chosen_.shape()), chosen_, dx);
    return dx;
  }

 private:
  Shape pixels(const Pass& pass) const { return {pass.examples * w_.height * w_.width, w_.channels}; }

  Windows w_;
  Kernel pool_, adjoint_;
  Buffer chosen_;
  Scratch outputs_, chosen_memory_, input_gradients_;
};

class FlattenLayer final : public Layer {
 public:
  explicit FlattenLayer(const LayerPlace& place)
      : Layer(place.input, {place.input.elements()}, place.storage) {}
  Buffer forward(const Pass&, const Buffer& x) override { return x; }
  Buffer backward(const Pass&, const Buffer& dy, bool) override { return dy; }
};

}  // namespace

std::unique_ptr<Layer> make_layer(const MaxPool2d& spec, const LayerPlace& place) {
  return std::make_unique<PoolLayer>(make_windows(place.input, spec.size, spec.size, spec.stride, 0, place),
                                     place);
}
std::unique_ptr<Layer> make_layer(const Flatten&, const LayerPlace& place) {
  return std::make_unique<FlattenLayer>(place);
}

}  // namespace lockstep::nn
