// Cases of nn: a small network around each layer, its outputs, loss and whole gradient; the reference is the plain one
// with complex steps.
#include "lockstep/verify.hpp"
#include "nn/layers/common.hpp"
#include "nn/layers/kernels.hpp"
#include "nn/losses.hpp"
#include "nn/optimizer_kernels.hpp"
#include "nn/reference.hpp"
#include "primitives/kernels.hpp"
#include "verify/inputs.hpp"

namespace lockstep {

void add_nn_cases(CaseRegistry& registry);

namespace nn {

namespace {

/// A network of a case, and how its data are drawn.
struct Drawn {
  NetworkSpec spec;
  int64_t examples = 1;
  int64_t classes = 0, tokens = 0;  // targets and inputs as whole numbers below these; 0: numbers
};

struct NetworkData {
  std::vector<double> parameters, inputs, targets;
};

int64_t target_count(const Drawn& d, const Shape& output) {
  const int64_t rows = d.examples * (output.elements() / output[output.rank() - 1]);
  return d.spec.loss == Loss::mean_squared ? d.examples * output.elements() : rows;
}

NetworkData draw_data(const Drawn& d, const Shape& output, uint64_t seed) {
  NetworkData data{initial_parameters(d.spec, seed), {}, {}};
  cases::Random random(seed);
  for (double& v : data.parameters) v = v == 0 ? random.uniform(-0.3, 0.3) : v;
  for (int64_t i = 0; i < d.examples * d.spec.input.elements(); ++i)
    data.inputs.push_back(d.tokens > 0 ? double(random.bits() % uint64_t(d.tokens)) : random.uniform(-1, 1));
  for (int64_t i = 0; i < target_count(d, output); ++i)
    data.targets.push_back(d.classes > 0 ? double(random.bits() % uint64_t(d.classes))
                                         : random.uniform(-3, 3));
  return data;
}

Buffer upload_numbers_as(const Device& device, const std::vector<double>& values, Storage storage) {
  if (storage == Storage::f64) return device.upload(values);
  if (storage == Storage::i32) return device.upload(std::vector<i32>(values.begin(), values.end()));
  return device.upload(std::vector<f32>(values.begin(), values.end()));
}

template <class T>
Array array_as(const std::vector<double>& values, const Shape& shape) {
  return Array::of(std::vector<T>(values.begin(), values.end()), shape);
}

template <class T>
CaseProblem network_problem(const Drawn& d, uint64_t seed, bool referenced) {
  const Storage storage = kStorageOf<T>;
  CaseProblem p;
  struct Shapes {
    Shape output;
    NetworkData data;
  };
  const auto shapes = std::make_shared<Shapes>();
  shapes->output = reference::output_shape(d.spec);
  shapes->data = draw_data(d, shapes->output, seed);
  p.bytes = double(sizeof(T)) * double(2 * shapes->data.parameters.size() + shapes->data.inputs.size());
  p.bind = [=](const Device& device) {
    const auto network = std::make_shared<Network>(device, d.spec, NetworkOptions{storage, seed});
    device.copy(upload_numbers_as(device, shapes->data.parameters, storage), network->parameters());
    const Batch batch{upload_numbers_as(device, shapes->data.inputs, network->input_storage()),
                      upload_numbers_as(device, shapes->data.targets, network->target_storage()), d.examples};
    const Buffer loss = device.allocate(storage, {1});
    return CaseRun{[=] { network->launch_gradient(batch, loss, 3); },
                   [=] {
                     const Array value = device.download(loss),
                                 gradient = device.download(network->gradient());
                     return std::vector{device.download(network->launch_outputs(batch.inputs, batch.size)),
                                        value, gradient};
                   }};
  };
  if (referenced)
    p.reference = [=] {
      const NetworkData& x = shapes->data;
      const auto y = reference::outputs<double>(d.spec, x.parameters, x.inputs);
      const double loss = reference::loss<double>(d.spec, x.parameters, x.inputs, x.targets);
      const std::vector<double> gradient = reference::gradient(d.spec, x.parameters, x.inputs, x.targets);
      return std::vector{array_as<T>(y.values, {y.rows(), y.columns()}), array_as<T>({loss}, {1}),
                         array_as<T>(gradient, {int64_t(gradient.size())})};
    };
  return p;
}

struct CaseText {
  std::string name;
  std::vector<std::string> small, bench;
  bool referenced = true;  // at small sizes
  std::vector<std::string> full{};
};

template <class T>
void add_network_case(CaseRegistry& registry, const CaseText& text,
                      const std::function<Drawn(const Shape&)>& draw, int rank,
                      const std::function<std::vector<Kernel>(T)>& kernels) {
  Case c;
  c.dtype = std::string(lockstep::name(lockstep::detail::kType<T>));
  c.name = "nn." + text.name + (sizeof(T) == 4 ? "" : "." + c.dtype);
  c.needs_f64 = sizeof(T) == 8;
  c.small = text.small;
  c.bench = text.bench;
  c.full = text.full;
  c.webgpu = Bound::relative(1e-4);
  c.reference = Bound::relative(sizeof(T) == 4 ? 2e-5 : 1e-11);
  c.fast = Bound::relative(1e-3);
  c.kernels = [=] { return kernels(T()); };
  c.make = [=](const std::string& size, uint64_t seed) {
    const bool is_small = std::find(text.small.begin(), text.small.end(), size) != text.small.end();
    return network_problem<T>(draw(parse_shape(size, rank)), seed, text.referenced && is_small);
  };
  registry.add(std::move(c));
}

/// Both element types. Sizes are examples first, then what `draw` makes of them.
template <class Kernels>
void add_network_cases(CaseRegistry& registry, const CaseText& text, int rank,
                       const std::function<Drawn(const Shape&)>& draw, Kernels kernels) {
  add_network_case<f32>(registry, text, draw, rank, kernels);
  add_network_case<f64>(registry, text, draw, rank, kernels);
}

std::vector<LayerSpec> transformer_block(int64_t width, int64_t heads) {
  return {Residual{{LayerNorm{}, Attention{heads}}},
          Residual{{LayerNorm{}, Dense{2 * width, Activation::gelu}, Dense{width}}}};
}

void add_dense_cases(CaseRegistry& registry) {
  // examples x inputs x hidden x outputs
  add_network_cases(
      registry, {"dense", {"1x1x1x2", "7x5x6x3"}, {"64x784x128x10"}}, 4,
      [](const Shape& s) {
        return Drawn{
            {.input = {s[1]},
             .layers = {Dense{s[2], Activation::gelu}, Dense{s[2], Activation::sigmoid}, Dense{s[3]}},
             .loss = Loss::mean_squared},
            s[0]};
      },
      []<class T>(T) {
        return std::vector{activate_kernel<T>(Activation::gelu, true),
                           slope_kernel<T>(Activation::gelu),
                           activate_kernel<T>(Activation::sigmoid, true),
                           slope_kernel<T>(Activation::sigmoid),
                           activate_kernel<T>(Activation::identity, true),
                           column_sums_kernel<T>(),
                           mean_squared_kernel<T>()};
      });
  add_network_cases(
      registry,
      {"mlp", {"3x4x5x3", "130x3x4x2"}, {"64x784x128x10", "256x784x1024x10"}, true, {"160x300x512x20"}}, 4,
      [](const Shape& s) {
        return Drawn{{.input = {s[1]},
                      .layers = {Dense{s[2], Activation::relu}, Dense{s[2], Activation::tanh}, Dense{s[3]}}},
                     s[0],
                     s[3]};
      },
      []<class T>(T) {
        return std::vector{activate_kernel<T>(Activation::relu, true),
                           slope_kernel<T>(Activation::relu),
                           activate_kernel<T>(Activation::tanh, true),
                           slope_kernel<T>(Activation::tanh),
                           cross_entropy_kernel<T>(true),
                           cross_entropy_kernel<T>(false),
                           hits_kernel<T>(),
                           clip_kernel<T>()};
      });
  add_network_cases(
      registry, {"dropout", {"3x4x5x3"}, {"64x784x128x10"}, false}, 4,
      [](const Shape& s) {
        return Drawn{{.input = {s[1]}, .layers = {Dense{s[2], Activation::tanh}, Dropout{0.4}, Dense{s[3]}}},
                     s[0],
                     s[3]};
      },
      []<class T>(T) { return std::vector{dropout_kernel<T>()}; });
  add_network_cases(
      registry, {"two_hot", {"1x2x3x5", "9x3x4x21"}, {"256x256x256x255"}}, 4,
      [](const Shape& s) {
        return Drawn{
            {.input = {s[1]}, .layers = {Dense{s[2], Activation::tanh}, Dense{s[3]}}, .loss = Loss::two_hot},
            s[0]};
      },
      []<class T>(T) { return std::vector{two_hot_kernel<T>(), two_hot_values_kernel<T>()}; });
}

void add_image_cases(CaseRegistry& registry) {
  // examples x height x width x channels
  add_network_cases(
      registry, {"conv2d", {"1x3x3x1", "2x5x6x2"}, {"64x28x28x8"}}, 4,
      [](const Shape& s) {
        return Drawn{{.input = {s[1], s[2], s[3]},
                      .layers = {Conv2d{s[3], 3, 3, 1, 1, Activation::relu}, Conv2d{2, 2, 3, 2, 1}, Flatten{},
                                 Dense{2}}},
                     s[0],
                     2};
      },
      []<class T>(T) {
        const Windows w{5, 6, 2, 3, 3, 1, 1, 5, 6};
        return std::vector{patches_kernel<T>(w), patches_adjoint_kernel<T>(w)};
      });
  add_network_cases(
      registry, {"max_pool2d", {"1x2x2x1", "2x5x7x2"}, {"64x28x28x8"}}, 4,
      [](const Shape& s) {
        return Drawn{
            {.input = {s[1], s[2], s[3]},
             .layers = {Conv2d{s[3], 3, 3, 1, 1, Activation::tanh}, MaxPool2d{2, 2}, Flatten{}, Dense{2}}},
            s[0],
            2};
      },
      []<class T>(T) {
        const Windows w{5, 7, 2, 2, 2, 2, 0, 2, 3};
        return std::vector{max_pool_kernel<T>(w), max_pool_adjoint_kernel<T>(w)};
      });
}

void add_sequence_cases(CaseRegistry& registry) {
  // examples x steps x columns
  add_network_cases(
      registry, {"layer_norm", {"1x1x2", "3x4x5"}, {"64x64x256"}}, 3,
      [](const Shape& s) {
        return Drawn{{.input = {s[1], s[2]}, .layers = {Dense{s[2]}, LayerNorm{}, Dense{3}}}, s[0], 3};
      },
      []<class T>(T) { return std::vector{layer_norm_kernel<T>(), layer_norm_adjoint_kernel<T>()}; });
  add_network_cases(
      registry, {"embedding", {"1x1x1", "3x5x4"}, {"16x64x64"}}, 3,
      [](const Shape& s) {
        return Drawn{{.input = {s[1]}, .layers = {Embedding{65, s[2], true}, Dense{3}}}, s[0], 3, 65};
      },
      []<class T>(T) { return std::vector{embed_kernel<T>(true), token_order_kernel(), as_i32_kernel()}; });
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
    add_network_cases(
        registry,
        {form == GruForm::reset_before ? "gru" : "gru.reset_after", {"1x1x1", "2x5x3"}, {"16x64x256"}}, 3,
        [form](const Shape& s) {
          return Drawn{{.input = {s[1], s[2]}, .layers = {Gru{s[2], form}, Dense{3}}}, s[0], 3};
        },
        [form]<class T>(T) {
          std::vector<Kernel> list{gru_kernel<T>(form, 0), gru_adjoint_kernel<T>(form, 0),
                                   shift_steps_kernel<T>()};
          if (form == GruForm::reset_before) {
            list.push_back(gru_kernel<T>(form, 1));
            list.push_back(gru_adjoint_kernel<T>(form, 1));
          }
          return list;
        });
  add_network_cases(
      registry, {"attention", {"1x1x2", "2x5x4"}, {"16x64x64"}}, 3,
      [](const Shape& s) {
        Drawn d{{.input = {s[1], s[2]}, .layers = transformer_block(s[2], 2)}, s[0], 3};
        d.spec.layers.emplace_back(Dense{3});
        return d;
      },
      []<class T>(T) {
        std::vector<Kernel> list;
        for (int step = 0; step < 6; ++step)
          list.push_back(attention_kernel<T>(AttentionStep(step), {5, 4, 2, true}));
        return list;
      });
}

}  // namespace

}  // namespace nn

void add_nn_cases(CaseRegistry& registry) {
  nn::add_dense_cases(registry);
  nn::add_image_cases(registry);
  nn::add_sequence_cases(registry);
}

}  // namespace lockstep
