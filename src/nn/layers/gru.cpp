// A GRU over sequences and its adjoint through time. Inputs of all steps are one product; a step has one product with
// the recurrent weights (reset_after) or two (reset_before).
#include <fmt/format.h>

#include <cmath>

#include "lockstep/kernel/kernel.hpp"
#include "lockstep/primitives.hpp"
#include "nn/layers/common.hpp"
#include "nn/layers/kernels.hpp"
#include "nn/layers/layer.hpp"

namespace lockstep::nn {

template <class T>
const Kernel& shift_steps_kernel() {
  static const Kernel k = kernel(nn_kernel_name<T>("gru.states_before"),
                                 [](At<2> at, Grid<T, 2> states, Out<T, 2> before, Param<i32> steps) {
                                   const Val<i32> row = at.y, column = at.x;
                                   before[at] =
                                       select(row % steps == 0, T(0), states(max(row - 1, 0), column));
                                 });
  return k;
}
template const Kernel& shift_steps_kernel<f32>();
template const Kernel& shift_steps_kernel<f64>();

namespace {

class GruLayer final : public Layer {
 public:
  GruLayer(const Gru& spec, const LayerPlace& place)
      : Layer(place.input, {place.input[0], spec.units}, place.storage),
        spec_(spec),
        steps_(place.input[0]),
        units_(spec.units),
        input_layer_(make_layer(Dense{3 * spec.units}, place)) {
    by_type(storage_, [&]<class T>(T) {
      for (int stage = 0; stage < 2; ++stage) {
        forward_[size_t(stage)] = gru_kernel<T>(spec.form, stage);
        adjoint_[size_t(stage)] = gru_adjoint_kernel<T>(spec.form, stage);
      }
      shift_ = shift_steps_kernel<T>();
    });
  }

  std::vector<TensorSpec> tensors() const override {
    std::vector<TensorSpec> list = input_layer_->tensors();
    list[0].width = std::sqrt(6.0 / double(last(input_) + units_));  // of each gate by itself
    list.push_back({"recurrent", {units_, 3 * units_}, 0, std::sqrt(3.0 / double(units_))});
    if (after()) list.push_back({"recurrent_bias", {3 * units_}, 0, 0});
    return list;
  }
  void bind(std::span<const Buffer> parameters, std::span<const Buffer> gradients) override {
    input_layer_->bind(parameters.first(2), gradients.first(2));
    Layer::bind(parameters, gradients);
  }

  Buffer forward(const Pass& pass, const Buffer& x) override {
    const Device& device = pass.device;
    const int64_t b = pass.examples;
    in_ = input_layer_->forward(pass, x).reshape({b, steps_ * 3 * units_});
    gates_ = gate_memory_.get(device, storage_, in_.shape());
    states_ = state_memory_.get(device, storage_, {b, steps_ * units_});
    // reset_after: products of the candidate; reset_before: states behind the reset gate.
    inner_ = inner_memory_.get(device, storage_, states_.shape());
    zero_ = zero_memory_.get(device, storage_, {b, units_});
    device.clear(zero_);
    const Buffer recurrent = parameters_[2].reshape({units_, 3 * units_});
    const Buffer product = products_.get(device, storage_, {b, (after() ? 3 : 2) * units_});
    const Buffer candidate = candidates_.get(device, storage_, {b, units_});
    for (int64_t t = 0; t < steps_; ++t) {
      const Buffer before = t > 0 ? step(states_, t - 1, 1) : zero_;
      const Shape extent{b, units_};
      if (after()) {
        multiply(device, before, recurrent, product);
        device.launch(forward_[0], extent, step(in_, t, 3), product, parameters_[3], before,
                      step(gates_, t, 3), step(inner_, t, 1), step(states_, t, 1));
        continue;
      }
      multiply(device, before, columns(recurrent, 0, 2), product);
      device.launch(forward_[0], extent, step(in_, t, 3), product, before, step(gates_, t, 3),
                    step(inner_, t, 1));
      multiply(device, step(inner_, t, 1), columns(recurrent, 2, 1), candidate);
      device.launch(forward_[1], extent, step(in_, t, 3), candidate, before, step(gates_, t, 3),
                    step(states_, t, 1));
    }
    return states_;
  }

  Buffer backward(const Pass& pass, const Buffer& dy, bool input_gradient) override {
    const Device& device = pass.device;
    const int64_t b = pass.examples, n = b * steps_;
    const Buffer dys = dy.reshape(states_.shape());
    const Buffer d_in = d_in_.get(device, storage_, gates_.shape());
    const Buffer d_product = after() ? d_products_.get(device, storage_, gates_.shape()) : d_in;
    const Buffer turned = turned_.get(device, storage_, {3 * units_, units_});
    primitives::transpose(device, parameters_[2].reshape({units_, 3 * units_}), turned);
    const Buffer through = candidates_.get(device, storage_, {b, units_});
    std::array<Buffer, 2> carries{carry_memory_[0].get(device, storage_, {b, units_}),
                                  carry_memory_[1].get(device, storage_, {b, units_})};
    Buffer carry = zero_;
    for (int64_t t = steps_; t-- > 0;) {
      const Buffer before = t > 0 ? step(states_, t - 1, 1) : zero_, direct = carries[size_t(t % 2)];
      const Shape extent{b, units_};
      if (after()) {
        device.launch(adjoint_[0], extent, step(dys, t, 1), carry, step(gates_, t, 3), step(inner_, t, 1),
                      before, step(d_in, t, 3), step(d_product, t, 3), direct);
        multiply(device, step(d_product, t, 3), turned, through);
      } else {
        device.launch(adjoint_[0], extent, step(dys, t, 1), carry, step(gates_, t, 3), before,
                      step(d_in, t, 3), direct);
        multiply(device, columns(step(d_in, t, 3), 2, 1), turned.rows(2 * units_, units_), through);
        device.launch(adjoint_[1], extent, through, step(gates_, t, 3), before,
                      columns(step(d_in, t, 3), 1, 1), direct);
        multiply(device, columns(step(d_in, t, 3), 0, 2), turned.rows(0, 2 * units_), through);
      }
      primitives::axpy(device, 1, through, direct);
      carry = direct;
    }
    recurrent_gradients(device, n, d_in.reshape({n, 3 * units_}), d_product.reshape({n, 3 * units_}));
    return input_layer_->backward(pass, d_in, input_gradient);
  }

 private:
  bool after() const { return spec_.form == GruForm::reset_after; }
  /// Columns of step t of (examples, steps * width * units).
  Buffer step(const Buffer& all, int64_t t, int64_t width) const {
    return all.window({0, t * width * units_}, {all.shape()[0], width * units_});
  }
  Buffer columns(const Buffer& x, int64_t first, int64_t width) const {
    return x.window({0, first * units_}, {x.shape()[0], width * units_});
  }

  void recurrent_gradients(const Device& device, int64_t n, const Buffer& d_in, const Buffer& d_product) {
    const Buffer before = before_.get(device, storage_, {n, units_});
    const Buffer turned = turned_states_.get(device, storage_, {units_, n});
    const Buffer gradient = gradients_[2].reshape({units_, 3 * units_});
    device.launch(shift_, before.shape(), states_.reshape(before.shape()), before, int32_t(steps_));
    primitives::transpose(device, before, turned);
    if (after()) {
      multiply(device, turned, d_product, gradient);
      column_sums(device, d_product, sums_.get(device, storage_, {column_scratch(n) * 3 * units_}),
                  gradients_[3]);
      return;
    }
    multiply(device, turned, columns(d_in, 0, 2), columns(gradient, 0, 2));
    primitives::transpose(device, inner_.reshape(before.shape()), turned);
    multiply(device, turned, columns(d_in, 2, 1), columns(gradient, 2, 1));
  }

  Gru spec_;
  int64_t steps_, units_;
  std::unique_ptr<Layer> input_layer_;
  std::array<Kernel, 2> forward_, adjoint_;
  Kernel shift_;
  Buffer in_, gates_, states_, inner_, zero_;  // of the last forward
  Scratch gate_memory_, state_memory_, inner_memory_, zero_memory_, products_, candidates_, d_in_,
      d_products_, turned_, before_, turned_states_, sums_;
  std::array<Scratch, 2> carry_memory_;
};

}  // namespace

std::unique_ptr<Layer> make_layer(const Gru& spec, const LayerPlace& place) {
  expect_layer(spec.units > 0, place, fmt::format("units {}", spec.units), "1 or more");
  expect_layer(place.input.rank() == 2, place, "input " + to_string(place.input), "a sequence (t, in)");
  return std::make_unique<GruLayer>(spec, place);
}

}  // namespace lockstep::nn
