#include "forecast/train/task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "io/arrays/idx.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {

namespace {

constexpr auto kWhere = "forecast train";
using nn::Activation;
using nn::Schedule;

void expect_model(Task& task, const std::string& wanted, std::initializer_list<const char*> models) {
  task.model = wanted.empty() ? *models.begin() : wanted;
  std::string list;
  for (const char* m : models) {
    if (task.model == m) return;
    list += (list.empty() ? "" : " or ") + std::string(m);
  }
  throw InputError(fmt::format("model '{}' of {}", wanted, task.name), kWhere, list);
}

Task xor_task(const TrainOptions& options) {
  Task t;
  t.name = "xor";
  expect_model(t, options.model, {"mlp"});
  t.network = {.input = {2}, .layers = {nn::Dense{8, Activation::tanh}, nn::Dense{2}}};
  t.train = {Array::of(std::vector<f32>{-1, -1, -1, 1, 1, -1, 1, 1}, {4, 2}),
             Array::of(std::vector<i32>{0, 1, 1, 0})};
  t.held = t.validation = t.train;  // four examples are all there are
  t.batch = 4;
  t.steps = 300;
  t.evaluate_every = 50;
  t.optimizer.schedule.rate = 0.03;
  return t;
}

std::filesystem::path data_file(const TrainOptions& options, const char* name) {
  const std::filesystem::path path = options.data / name;
  if (options.data.empty() || !std::filesystem::exists(path))
    throw InputError(
        fmt::format("no {} in {}", name, options.data.empty() ? "--data" : options.data.string()), kWhere,
        fmt::format("--data DIR with {} for {}", name, options.task));
  return path;
}

Task mnist_task(const TrainOptions& options) {
  constexpr int64_t kSide = 28, kClasses = 10;
  Task t;
  t.name = "mnist";
  expect_model(t, options.model, {"mlp", "cnn"});
  const auto image_file = data_file(options, "t10k-images-idx3-ubyte.gz"),
             label_file = data_file(options, "t10k-labels-idx1-ubyte.gz");
  const Array images = io::read_idx(image_file), labels = io::read_idx(label_file);
  if (images.rank() != 3 || images.size(1) != kSide || images.size(2) != kSide || images.size(0) < 10)
    throw InputError(fmt::format("images {}", to_string(images.shape())), image_file.string(),
                     "(n, 28, 28), n from 10");
  if (labels.rank() != 1 || labels.size(0) != images.size(0))
    throw InputError(fmt::format("labels {}", to_string(labels.shape())), label_file.string(),
                     fmt::format("({})", images.size(0)));
  const auto* pixels = static_cast<const uint8_t*>(static_cast<const void*>(images.data()));
  const auto* digits = static_cast<const uint8_t*>(static_cast<const void*>(labels.data()));
  std::vector<f32> inputs(size_t(images.elements()));
  std::vector<i32> targets(size_t(labels.elements()));
  // Mean and deviation of the usual training images, as is the custom.
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = (f32(pixels[i]) / 255.0f - 0.1307f) / 0.3081f;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (digits[i] >= kClasses)
      throw InputError(fmt::format("label {} of image {}", digits[i], i), label_file.string(), "0 to 9");
    targets[i] = digits[i];
  }
  const int64_t n = images.size(0), test = n / 5, held = std::min<int64_t>(256, n / 20);
  const Dataset all{Array::of(std::move(inputs), {n, kSide * kSide}), Array::of(std::move(targets))};
  t.train = part(all, 0, n - test - held);
  t.held = held > 0 ? part(all, n - test - held, held) : t.train;
  t.validation = part(all, n - test, test);
  if (t.model == "mlp")
    t.network = {.input = {kSide * kSide}, .layers = {nn::Dense{128, Activation::relu}, nn::Dense{kClasses}}};
  else
    t.network = {.input = {kSide, kSide, 1},
                 .layers = {nn::Conv2d{8, 5, 5, 1, 2, Activation::relu}, nn::MaxPool2d{2, 2},
                            nn::Conv2d{16, 5, 5, 1, 2, Activation::relu}, nn::MaxPool2d{2, 2}, nn::Flatten{},
                            nn::Dense{64, Activation::relu}, nn::Dense{kClasses}}};
  t.batch = 64;
  t.steps = 1200;
  t.evaluate_every = 100;
  t.optimizer.schedule = {
      .rate = 1e-3, .decay = Schedule::Decay::cosine, .total = t.steps, .final_share = 0.05};
  return t;
}

/// Characters as tokens, in the order of their bytes.
std::pair<std::vector<i32>, int64_t> tokens_of(const std::string& text) {
  std::array<i32, 256> number{};
  for (const char c : text) number[uint8_t(c)] = 1;
  i32 count = 0;
  for (i32& n : number) n = n ? count++ : -1;
  std::vector<i32> tokens;
  for (const char c : text) tokens.push_back(number[uint8_t(c)]);
  return {std::move(tokens), count};
}

std::vector<nn::LayerSpec> transformer(int64_t vocabulary, int64_t width, int64_t heads, int blocks) {
  std::vector<nn::LayerSpec> layers{nn::Embedding{vocabulary, width, true}};
  for (int k = 0; k < blocks; ++k) {
    layers.emplace_back(nn::Residual{{nn::LayerNorm{}, nn::Attention{heads}}});
    layers.emplace_back(
        nn::Residual{{nn::LayerNorm{}, nn::Dense{4 * width, Activation::gelu}, nn::Dense{width}}});
  }
  layers.emplace_back(nn::LayerNorm{});
  layers.emplace_back(nn::Dense{vocabulary});
  return layers;
}

Task charlm_task(const TrainOptions& options) {
  constexpr int64_t kWindow = 64;
  Task t;
  t.name = "charlm";
  expect_model(t, options.model, {"transformer", "gru"});
  const auto file = data_file(options, "tinyshakespeare.txt");
  const std::string text = io::read_text_file(file);
  if (int64_t(text.size()) < 40 * kWindow)
    throw InputError(fmt::format("{} characters", text.size()), file.string(),
                     fmt::format("{} or more", 40 * kWindow));
  auto [tokens, vocabulary] = tokens_of(text);
  const int64_t n = int64_t(tokens.size()), last = n - n / 10, held = last - n / 50;
  const auto slice = [&](int64_t first, int64_t end) {
    return Dataset{Array::of(std::vector<i32>(tokens.begin() + first, tokens.begin() + end)), {}, kWindow};
  };
  t.train = slice(0, held);
  t.held = slice(held, last);
  if (t.held.count() < 1) t.held = t.train;
  t.validation = slice(last, n);
  t.validation_examples = 512;
  t.network.input = {kWindow};
  t.batch = 16;
  t.steps = 1500;
  t.evaluate_every = 250;
  t.optimizer = {.method = optimize::Method::adamw,
                 .schedule = {.rate = 2e-3,
                              .warmup = 50,
                              .decay = Schedule::Decay::cosine,
                              .total = t.steps,
                              .final_share = 0.1},
                 .weight_decay = 0.01,
                 .clip_norm = 1};
  if (t.model == "transformer")
    t.network.layers = transformer(vocabulary, 64, 4, 2);
  else
    t.network.layers = {nn::Embedding{vocabulary, 32}, nn::Gru{128, nn::GruForm::reset_before},
                        nn::Dense{vocabulary}};
  return t;
}

}  // namespace

Dataset part(const Dataset& all, int64_t first, int64_t count) {
  const auto rows = [&](const Array& a) {
    Sizes shape = a.shape();
    const int64_t row = a.elements() / shape[0];
    shape[0] = count;
    return with_element(a.storage(), [&]<class E>(E) {
      if constexpr (std::is_same_v<E, bool>) {
        return Array{};
      } else {
        const E* data = reinterpret_cast<const E*>(a.data()) + first * row;
        return Array::of(std::vector<E>(data, data + count * row), shape);
      }
    });
  };
  return {rows(all.inputs), rows(all.targets), 0};
}

Task make_task(const TrainOptions& options) {
  Task task;
  if (options.task == "xor") {
    task = xor_task(options);
  } else if (options.task == "mnist") {
    task = mnist_task(options);
  } else if (options.task == "charlm") {
    task = charlm_task(options);
  } else if (options.task.ends_with(".toml")) {
    if (!options.model.empty())
      throw InputError(fmt::format("model '{}'", options.model), kWhere, "layers of the file");
    task = read_task(options.task,
                     options.data.empty() ? std::filesystem::path(options.task).parent_path() : options.data);
  } else {
    throw InputError(fmt::format("unknown task '{}'", options.task), kWhere,
                     "xor, mnist, charlm or a .toml file");
  }
  if (options.steps > 0) task.steps = task.optimizer.schedule.total = options.steps;
  if (options.batch > 0) task.batch = options.batch;
  if (options.evaluate_every > 0) task.evaluate_every = options.evaluate_every;
  if (options.rate) task.optimizer.schedule.rate = *options.rate;
  if (options.decay) task.optimizer.schedule.decay = *options.decay;
  if (task.optimizer.schedule.total == 0) task.optimizer.schedule.total = task.steps;
  task.optimizer.schedule.warmup = std::min(task.optimizer.schedule.warmup, task.steps / 2);
  return task;
}

}  // namespace lockstep::forecast
