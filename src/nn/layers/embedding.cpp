// Rows of a table by whole numbers. The adjoint sorts the rows of each token side by side, in their order, and
// gathers: no atomics.
#include <fmt/format.h>

#include "lockstep/primitives.hpp"
#include "nn/layers/common.hpp"
#include "nn/layers/kernels.hpp"
#include "nn/layers/layer.hpp"

namespace lockstep::nn {

template <class T>
const Kernel& embed_kernel(bool positions) {
  const auto row_of = [](const Grid<T, 2>& table, const Val<i32>& token, const Val<i32>& column) {
    const Val<i32> place = clamp(token, 0, table.size(0) - 1);
    return select(place == token, table(place, column), Val<T>(std::numeric_limits<T>::quiet_NaN()));
  };
  static const Kernel plain =
      kernel(nn_kernel_name<T>("embed"), [&](At<2> at, Grid<i32, 1> tokens, Grid<T, 2> table, Out<T, 2> y) {
        y[at] = row_of(table, tokens[at.y], at.x);
      });
  static const Kernel placed = kernel(
      nn_kernel_name<T>("embed.positions"),
      [&](At<2> at, Grid<i32, 1> tokens, Grid<T, 2> table, Grid<T, 2> places, Out<T, 2> y) {
        y[at] = row_of(table, tokens[at.y], at.x) + places(Val<i32>(at.y) % places.size(0), Val<i32>(at.x));
      });
  return positions ? placed : plain;
}
template const Kernel& embed_kernel<f32>(bool);
template const Kernel& embed_kernel<f64>(bool);

const Kernel& token_order_kernel() {
  static const Kernel k = kernel("nn.token_order", [](At<1> at, Grid<i32, 1> tokens, Grid<i32, 1> first,
                                                      Out<i32, 1> order) {
    const Val<i32> row = at.x, token = tokens[at], places = first.size(0) - 1;
    Var<i32> before = 0;
    for_(0, row, [&](Val<i32> other) { before += select(tokens[other] == token, Val<i32>(1), Val<i32>(0)); });
    if_(token >= 0 && token < places, [&] { order[first[token] + before] = row; });
  });
  return k;
}

const Kernel& as_i32_kernel() {
  static const Kernel k = kernel("nn.as_i32", [](At<1> at, Grid<u32, 1> from, Out<i32, 1> to) {
    to[at] = cast<i32>(Val<u32>(from[at]));
  });
  return k;
}

namespace {

class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const Embedding& spec, const LayerPlace& place)
      : Layer(place.input, {place.input[0], spec.width}, place.storage), spec_(spec) {}

  std::vector<TensorSpec> tensors() const override {
    constexpr double kWidth = 0.02 * 1.7320508075688772;  // standard deviation 0.02
    std::vector<TensorSpec> list{{"table", {spec_.vocabulary, spec_.width}, 0, kWidth}};
    if (spec_.positions) list.push_back({"positions", {input_[0], spec_.width}, 0, kWidth});
    return list;
  }

  Buffer forward(const Pass& pass, const Buffer& x) override {
    const int64_t n = pass.examples * input_[0];
    tokens_ = x.reshape({n});
    const Buffer y = outputs_.get(pass.device, storage_, {n, spec_.width});
    const Buffer table = parameters_[0].reshape({spec_.vocabulary, spec_.width});
    by_type(storage_, [&]<class T>(T) {
      if (spec_.positions)
        pass.device.launch(embed_kernel<T>(true), y.shape(), tokens_, table,
                           parameters_[1].reshape({input_[0], spec_.width}), y);
      else
        pass.device.launch(embed_kernel<T>(false), y.shape(), tokens_, table, y);
    });
    return y;
  }

  Buffer backward(const Pass& pass, const Buffer& dy, bool) override {
    const Device& device = pass.device;
    const int64_t n = pass.examples * input_[0], bins = spec_.vocabulary + 1;
    const Buffer counts = counts_.get(device, Storage::u32, {bins}),
                 starts = starts_.get(device, Storage::u32, {bins});
    const Buffer first = first_.get(device, Storage::i32, {bins}),
                 order = order_.get(device, Storage::i32, {n});
    primitives::histogram(device, tokens_, counts);
    primitives::exclusive_scan(device, counts, starts);
    device.launch(as_i32_kernel(), {bins}, starts, first);
    device.clear(order);  // places of numbers that are no tokens
    device.launch(token_order_kernel(), {n}, tokens_, first, order);
    primitives::gather_rows(device, {first, order, {}}, dy.reshape({n, spec_.width}),
                            gradients_[0].reshape({spec_.vocabulary, spec_.width}));
    if (spec_.positions) {
      const int64_t columns = input_[0] * spec_.width;
      column_sums(device, dy.reshape({pass.examples, columns}),
                  sums_.get(device, storage_, {column_scratch(pass.examples) * columns}), gradients_[1]);
    }
    return {};
  }

 private:
  Embedding spec_;
  Buffer tokens_;
  Scratch outputs_, counts_, starts_, first_, order_, sums_;
};

}  // namespace

std::unique_ptr<Layer> make_layer(const Embedding& spec, const LayerPlace& place) {
  expect_layer(spec.vocabulary > 0 && spec.width > 0, place,
               fmt::format("vocabulary {}, width {}", spec.vocabulary, spec.width), "1 or more");
  expect_layer(place.input.rank() == 1, place, "input " + to_string(place.input), "a sequence (t)");
  return std::make_unique<EmbeddingLayer>(spec, place);
}

}  // namespace lockstep::nn
