#include "lockstep/nn/network.hpp"

#include <fmt/format.h>

#include <array>

#include "core/numbers/random.hpp"
#include "lockstep/error.hpp"
#include "lockstep/primitives.hpp"
#include "nn/layers/layer.hpp"
#include "nn/losses.hpp"

namespace lockstep::nn {

/// The layers of a network and its tensors.
struct Stack {
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<ParameterTensor> tensors;
  std::vector<TensorSpec> initial;        // of each tensor
  std::vector<std::pair<int, int>> owns;  // first tensor of a layer and their number
};

namespace {

constexpr std::array<std::string_view, 5> kActivations{"identity", "tanh", "relu", "gelu", "sigmoid"};
constexpr std::array<std::string_view, 3> kLosses{"cross_entropy", "mean_squared", "two_hot"};

Stack make_stack(const NetworkSpec& spec, Storage storage, uint64_t seed) {
  if (spec.input.rank() < 1 || spec.input.rank() > 3 || spec.input.elements() < 1)
    throw InputError(fmt::format("input {}", to_string(spec.input)), "network", "1 to 3 axes of 1 or more");
  if (spec.layers.empty()) throw InputError("no layers", "network", "one or more");
  Stack stack;
  int64_t offset = 0;
  Shape shape = spec.input;
  for (size_t k = 0; k < spec.layers.size(); ++k) {
    if (k > 0 && std::holds_alternative<Embedding>(spec.layers[k].variant()))
      throw InputError(fmt::format("layer {} is an embedding", k + 1), "network",
                       "one as the first layer only");
    const std::string where = fmt::format("layer{}.{}", k + 1, kind_name(spec.layers[k]));
    stack.layers.push_back(make_layer(spec.layers[k], {where, shape, storage, seed, k + 1}));
    shape = stack.layers.back()->output();
    const std::vector<TensorSpec> tensors = stack.layers.back()->tensors();
    stack.owns.emplace_back(int(stack.tensors.size()), int(tensors.size()));
    for (const TensorSpec& t : tensors) {
      stack.tensors.push_back({where + "." + t.name, t.shape, offset, t.size()});
      stack.initial.push_back(t);
      offset += t.size();
    }
  }
  return stack;
}

std::vector<double> draw(const Stack& stack, uint64_t seed) {
  std::vector<double> values;
  for (size_t k = 0; k < stack.tensors.size(); ++k) {
    const TensorSpec& t = stack.initial[k];
    const uint32_t key = random_key(seed, k);
    for (int64_t i = 0; i < t.size(); ++i)
      values.push_back(t.centre +
                       t.width * (2 * unit_interval(philox(uint32_t(i), uint32_t(i >> 32), key)) - 1));
  }
  return values;
}

}  // namespace

std::string_view name(Activation activation) { return kActivations[size_t(activation)]; }
std::string_view name(Loss loss) { return kLosses[size_t(loss)]; }
Activation parse_activation(std::string_view text) {
  for (size_t k = 0; k < kActivations.size(); ++k)
    if (kActivations[k] == text) return Activation(k);
  throw InputError(fmt::format("activation '{}'", text), "network", "identity, tanh, relu, gelu or sigmoid");
}

struct Network::State {
  Device device;
  NetworkSpec spec;
  NetworkOptions options;
  Stack stack;
  LossHead head;
  Buffer parameters, gradient;

  State(const Device& d, const NetworkSpec& s, const NetworkOptions& o)
      : device(d),
        spec(s),
        options(o),
        stack(make_stack(s, o.storage, o.seed)),
        head(s.loss, stack.layers.back()->output(), o.storage) {}

  Pass pass(int64_t examples, bool training, uint64_t step, int64_t first = 0) const {
    return {device, examples, training, step, first};
  }
  Storage input_storage() const {
    return std::holds_alternative<Embedding>(spec.layers[0].variant()) ? Storage::i32 : options.storage;
  }
  void check_inputs(const Buffer& inputs, int64_t examples) const {
    const int64_t count = examples * spec.input.elements();
    const Storage wanted = input_storage();
    if (examples < 1) throw InputError(fmt::format("{} examples", examples), "batch", "1 or more");
    if (!inputs || inputs.elements() != count || inputs.storage() != wanted || !inputs.contiguous())
      throw InputError(inputs ? fmt::format("inputs {} of {} elements", lockstep::name(inputs.storage()),
                                            inputs.elements())
                              : "no inputs",
                       "batch", fmt::format("{} of {} elements", lockstep::name(wanted), count));
  }
  Buffer outputs(const Pass& pass, const Buffer& inputs) {
    Buffer x = inputs;
    for (const auto& layer : stack.layers) x = layer->forward(pass, x);
    return x;
  }
};

Network::Network(const Device& device, const NetworkSpec& spec, const NetworkOptions& options) {
  if (options.storage != Storage::f32 && options.storage != Storage::f64)
    throw InputError(fmt::format("parameters of {}", lockstep::name(options.storage)), "network",
                     "f32 or f64");
  state_ = std::make_unique<State>(device, spec, options);
  State& s = *state_;
  const int64_t n = parameter_count(s.stack.tensors);
  const std::vector<double> values = draw(s.stack, options.seed);
  if (options.storage == Storage::f64)
    s.parameters = device.upload(values);
  else
    s.parameters = device.upload(std::vector<float>(values.begin(), values.end()));
  s.gradient = device.allocate(options.storage, {n});
  device.clear(s.gradient);
  for (size_t k = 0; k < s.stack.layers.size(); ++k) {
    std::vector<Buffer> parameters, gradients;
    for (int t = s.stack.owns[k].first; t < s.stack.owns[k].first + s.stack.owns[k].second; ++t) {
      const ParameterTensor& tensor = s.stack.tensors[size_t(t)];
      parameters.push_back(s.parameters.rows(tensor.offset, tensor.size));
      gradients.push_back(s.gradient.rows(tensor.offset, tensor.size));
    }
    s.stack.layers[k]->bind(parameters, gradients);
  }
}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

const Device& Network::device() const { return state_->device; }
std::span<const ParameterTensor> Network::tensors() const { return state_->stack.tensors; }
Buffer Network::parameters() const { return state_->parameters; }
Buffer Network::gradient() const { return state_->gradient; }
const Shape& Network::output_shape() const { return state_->stack.layers.back()->output(); }
Storage Network::input_storage() const { return state_->input_storage(); }
Storage Network::target_storage() const { return state_->head.target_storage(); }
const NetworkSpec& Network::spec() const { return state_->spec; }
const NetworkOptions& Network::options() const { return state_->options; }

Buffer Network::launch_outputs(const Buffer& inputs, int64_t count) {
  state_->check_inputs(inputs, count);
  const Buffer y = state_->outputs(state_->pass(count, false, 0), inputs);
  const int64_t columns = output_shape()[output_shape().rank() - 1];
  return y.reshape({y.elements() / columns, columns});
}

void Network::launch_loss(const Batch& batch, const Buffer& loss) {
  State& s = *state_;
  s.check_inputs(batch.inputs, batch.size);
  s.head.check(batch.size, batch.targets);
  const Pass pass = s.pass(batch.size, false, 0);
  s.head.launch(pass, s.outputs(pass, batch.inputs), batch.targets, loss, false, batch.whole);
}

void Network::launch_gradient(const Batch& batch, const Buffer& loss, uint64_t step) {
  State& s = *state_;
  s.check_inputs(batch.inputs, batch.size);
  s.head.check(batch.size, batch.targets);
  const Pass pass = s.pass(batch.size, true, step, batch.first);
  Buffer d = s.head.launch(pass, s.outputs(pass, batch.inputs), batch.targets, loss, true, batch.whole);
  for (size_t k = s.stack.layers.size(); k-- > 0;) d = s.stack.layers[k]->backward(pass, d, k > 0);
}

double Network::accuracy(const Batch& batch) {
  State& s = *state_;
  s.check_inputs(batch.inputs, batch.size);
  s.head.check(batch.size, batch.targets);
  const Pass pass = s.pass(batch.size, false, 0);
  const int64_t right = s.head.correct(pass, s.outputs(pass, batch.inputs), batch.targets);
  return double(right) / double(s.head.row_count(batch.size));
}

std::vector<double> initial_parameters(const NetworkSpec& spec, uint64_t seed) {
  return draw(make_stack(spec, Storage::f64, seed), seed);
}

int64_t parameter_count(const NetworkSpec& spec) {
  return parameter_count(make_stack(spec, Storage::f64, 0).tensors);
}

}  // namespace lockstep::nn
