// Multi-head self-attention between two dense layers. Rows are places of examples; every sum runs over places or
// over the depth of a head, in their order.
#include <fmt/format.h>

#include <cmath>

#include "device/cached_kernel.hpp"
#include "nn/layers/common.hpp"
#include "nn/layers/kernels.hpp"
#include "nn/layers/layer.hpp"

namespace lockstep::nn {

std::string Heads::text() const {
  return fmt::format(".{}x{}.heads{}{}", length, width, heads, causal ? ".causal" : "");
}

namespace {

constexpr std::array<std::string_view, 6> kSteps{"scores",      "softmax",         "mix",
                                                 "mix_adjoint", "softmax_adjoint", "inputs_adjoint"};

/// A row of scores: an example's head at a place.
struct ScoreRow {
  ScoreRow(const Val<i32>& row, const Heads& h)
      : place(row % i32(h.length)),
        head(row / i32(h.length) % i32(h.heads)),
        first(row / i32(h.length * h.heads) * i32(h.length)),
        seen(h.causal ? place + 1 : Val<i32>(i32(h.length))) {}
  Val<i32> place, head, first, seen;  // first row of the example; places that this one sees
};

template <class T>
Kernel product_kernel(const std::string& title, const Heads& h, bool adjoint) {
  // scores(r, j) = q_i . k_j / sqrt(depth); adjoint: dp(r, j) = do_i . v_j
  const int depth = int(h.depth()), width = int(h.width);
  return kernel(title, [&](At<2> at, Grid<T, 2> left, Grid<T, 2> qkv, Out<T, 2> to) {
    const ScoreRow row(at.y, h);
    const Val<i32> j = at.x, column = row.head * depth;
    Var<T> sum = T(0);
    if_(j < row.seen, [&] {
      for_(0, depth, [&](Val<i32> k) {
        sum = fma(left(row.first + row.place, column + k),
                  qkv(row.first + j, column + k + (adjoint ? 2 : 1) * width), sum);
      });
    });
    to[at] = adjoint ? Val<T>(sum) : sum * T(1 / std::sqrt(double(depth)));
  });
}

template <class T>
Kernel softmax_rows_kernel(const std::string& title, const Heads& h) {
  return kernel(title, [&](At<1> at, InOut<T, 2> p) {
    const Val<i32> r = at.x;
    const ScoreRow row(r, h);
    Var<T> most = p(r, 0);
    for_(1, row.seen, [&](Val<i32> j) { most = max(most, p(r, j)); });
    const Val<T> top = most;
    Var<T> sum = T(0);
    for_(0, row.seen, [&](Val<i32> j) {
      const Val<T> e = exp(p(r, j) - top);
      p(r, j) = e;
      sum += e;
    });
    const Val<T> share = T(1) / Val<T>(sum);
    for_(0, row.seen, [&](Val<i32> j) { p(r, j) = p(r, j) * share; });
  });
}

template <class T>
Kernel softmax_adjoint_rows_kernel(const std::string& title, const Heads& h) {
  return kernel(title, [&](At<1> at, Grid<T, 2> p, InOut<T, 2> d) {
    const Val<i32> r = at.x;
    const ScoreRow row(r, h);
    Var<T> along = T(0);
    for_(0, row.seen, [&](Val<i32> j) { along = fma(p(r, j), d(r, j), along); });
    const Val<T> mean = along, scale = T(1 / std::sqrt(double(h.depth())));
    for_(0, row.seen, [&](Val<i32> j) { d(r, j) = (p(r, j) * (d(r, j) - mean)) * scale; });
  });
}

/// A row and a column of an array of places: the example's first row, the place, the first score row of its head.
struct PlaceRow {
  PlaceRow(const Val<i32>& row, const Val<i32>& column, const Heads& h)
      : place(row % i32(h.length)),
        first(row - place),
        scores((row / i32(h.length) * i32(h.heads) + column / i32(h.depth())) * i32(h.length)) {}
  Val<i32> place, first, scores;
};

template <class T>
Kernel mix_kernel(const std::string& title, const Heads& h) {
  return kernel(title, [&](At<2> at, Grid<T, 2> p, Grid<T, 2> qkv, Out<T, 2> to) {
    const Val<i32> column = at.x;
    const PlaceRow row(at.y, column, h);
    Var<T> sum = T(0);
    for_(0, h.causal ? row.place + 1 : Val<i32>(i32(h.length)), [&](Val<i32> j) {
      sum = fma(p(row.scores + row.place, j), qkv(row.first + j, column + 2 * i32(h.width)), sum);
    });
    to[at] = sum;
  });
}

template <class T>
Kernel inputs_adjoint_kernel(const std::string& title, const Heads& h) {
  return kernel(title,
                [&](At<2> at, Grid<T, 2> p, Grid<T, 2> ds, Grid<T, 2> qkv, Grid<T, 2> d, Out<T, 2> to) {
                  const Val<i32> column = at.x, width = i32(h.width), length = i32(h.length);
                  const PlaceRow row(at.y, column, h);
                  Var<T> query = T(0), key = T(0), value = T(0);
                  for_(0, h.causal ? row.place + 1 : length, [&](Val<i32> j) {
                    query = fma(ds(row.scores + row.place, j), qkv(row.first + j, column + width), query);
                  });
                  for_(h.causal ? row.place : Val<i32>(0), length, [&](Val<i32> i) {
                    key = fma(ds(row.scores + i, row.place), qkv(row.first + i, column), key);
                    value = fma(p(row.scores + i, row.place), d(row.first + i, column), value);
                  });
                  const Val<i32> r = at.y;
                  to(r, column) = query;
                  to(r, column + width) = key;
                  to(r, column + 2 * width) = value;
                });
}

}  // namespace

template <class T>
Kernel attention_kernel(AttentionStep step, const Heads& h) {
  const std::string title = nn_kernel_name<T>(fmt::format("attention.{}{}", kSteps[size_t(step)], h.text()));
  return cached_kernel(title, [&] {
    switch (step) {
      case AttentionStep::scores: return product_kernel<T>(title, h, false);
      case AttentionStep::softmax: return softmax_rows_kernel<T>(title, h);
      case AttentionStep::mix: return mix_kernel<T>(title, h);
      case AttentionStep::mix_adjoint: return product_kernel<T>(title, h, true);
      case AttentionStep::softmax_adjoint: return softmax_adjoint_rows_kernel<T>(title, h);
      case AttentionStep::inputs_adjoint: break;
    }
    return inputs_adjoint_kernel<T>(title, h);
  });
}
template Kernel attention_kernel<f32>(AttentionStep, const Heads&);
template Kernel attention_kernel<f64>(AttentionStep, const Heads&);

namespace {

class AttentionLayer final : public Layer {
 public:
  AttentionLayer(const Heads& heads, const LayerPlace& place)
      : Layer(place.input, place.input, place.storage),
        h_(heads),
        qkv_layer_(make_layer(Dense{3 * heads.width}, place)),
        out_layer_(make_layer(Dense{heads.width}, place)) {
    by_type(storage_, [&]<class T>(T) {
      for (size_t k = 0; k < kernels_.size(); ++k) kernels_[k] = attention_kernel<T>(AttentionStep(k), h_);
    });
  }

  std::vector<TensorSpec> tensors() const override {
    std::vector<TensorSpec> list;
    for (TensorSpec& t : qkv_layer_->tensors()) list.push_back(t), list.back().name = "qkv." + t.name;
    for (TensorSpec& t : out_layer_->tensors()) list.push_back(t), list.back().name = "out." + t.name;
    return list;
  }
  void bind(std::span<const Buffer> parameters, std::span<const Buffer> gradients) override {
    qkv_layer_->bind(parameters.first(2), gradients.first(2));
    out_layer_->bind(parameters.subspan(2), gradients.subspan(2));
  }

  Buffer forward(const Pass& pass, const Buffer& x) override {
    const int64_t n = pass.examples * h_.length, r = n * h_.heads;
    qkv_ = qkv_layer_->forward(pass, x).reshape({n, 3 * h_.width});
    p_ = shares_.get(pass.device, storage_, {r, h_.length});
    const Buffer mixed = mixed_.get(pass.device, storage_, {n, h_.width});
    launch(pass, AttentionStep::scores, p_.shape(), qkv_, qkv_, p_);
    launch(pass, AttentionStep::softmax, {r}, p_);
    launch(pass, AttentionStep::mix, mixed.shape(), p_, qkv_, mixed);
    return out_layer_->forward(pass, mixed);
  }

  Buffer backward(const Pass& pass, const Buffer& dy, bool input_gradient) override {
    const Buffer d = out_layer_->backward(pass, dy, true);
    const Buffer dp = share_gradients_.get(pass.device, storage_, p_.shape());
    const Buffer dqkv = qkv_gradients_.get(pass.device, storage_, qkv_.shape());
    launch(pass, AttentionStep::mix_adjoint, p_.shape(), d, qkv_, dp);
    launch(pass, AttentionStep::softmax_adjoint, {p_.shape()[0]}, p_, dp);
    launch(pass, AttentionStep::inputs_adjoint, d.shape(), p_, dp, qkv_, d, dqkv);
    return qkv_layer_->backward(pass, dqkv, input_gradient);
  }

 private:
  template <class... A>
  void launch(const Pass& pass, AttentionStep step, const Shape& extent, const A&... arguments) const {
    pass.device.launch(kernels_[size_t(step)], extent, arguments...);
  }

  Heads h_;
  std::unique_ptr<Layer> qkv_layer_, out_layer_;
  std::array<Kernel, 6> kernels_;
  Buffer qkv_, p_;  // of the last forward
  Scratch shares_, mixed_, share_gradients_, qkv_gradients_;
};

}  // namespace

std::unique_ptr<Layer> make_layer(const Attention& spec, const LayerPlace& place) {
  expect_layer(place.input.rank() == 2, place, "input " + to_string(place.input), "a sequence (t, c)");
  const int64_t width = place.input[1];
  expect_layer(spec.heads > 0 && width % spec.heads == 0, place,
               fmt::format("{} heads of {} columns", spec.heads, width), "a divisor of the columns");
  return std::make_unique<AttentionLayer>(Heads{place.input[0], width, spec.heads, spec.causal}, place);
}

}  // namespace lockstep::nn
