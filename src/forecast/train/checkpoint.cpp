#include "forecast/train/checkpoint.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "io/arrays/npz_file.hpp"
#include "io/text/json_text.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {

namespace {

constexpr auto kExpected = "a checkpoint of forecast train";

template <class E>
std::vector<E> values(const io::NpzFile& file, const char* name, const Sizes& sizes,
                      int64_t most = INT64_MAX) {
  const Array a = file.read(name, {kStorageOf<E>, int(sizes.size()), sizes, most}).packed();
  return {a.as<E>().begin(), a.as<E>().end()};
}

/// A vector with an element for each parameter.
Array vector_of(const io::NpzFile& file, const char* name, int64_t parameters) {
  const Array a = file.read(name, {{}, 1, {parameters}});
  if (a.storage() != Storage::f32 && a.storage() != Storage::f64)
    throw InputError(fmt::format("{} of {}", name, lockstep::name(a.storage())), file.where(), "f32 or f64");
  if (const auto at = first_not_finite(a.packed()))
    throw InputError(fmt::format("{} is not finite at {}", name, *at), file.where(), "finite numbers");
  return a;
}

constexpr size_t kColumns = 8;
constexpr bool kIsCount[kColumns] = {true, false, false, false, false, false, true, true};

// ── networks as text ──

std::string text_of(const nn::Dense& l) {
  return fmt::format("dense {} {} bias {} initial {}", l.units, name(l.activation), l.bias, int(l.initial));
}
std::string text_of(const nn::Conv2d& l) {
  return fmt::format("conv2d {} {}x{} stride {} padding {} {} initial {}", l.channels, l.height, l.width,
                     l.stride, l.padding, name(l.activation), int(l.initial));
}
std::string text_of(const nn::MaxPool2d& l) {
  return fmt::format("max_pool2d {} stride {}", l.size, l.stride);
}
std::string text_of(const nn::Flatten&) { return "flatten"; }
std::string text_of(const nn::LayerNorm& l) { return fmt::format("layer_norm {}", l.epsilon); }
std::string text_of(const nn::Embedding& l) {
  return fmt::format("embedding {} {} positions {}", l.vocabulary, l.width, l.positions);
}
std::string text_of(const nn::Dropout& l) { return fmt::format("dropout {}", l.rate); }
std::string text_of(const nn::Gru& l) { return fmt::format("gru {} form {}", l.units, int(l.form)); }
std::string text_of(const nn::Attention& l) {
  return fmt::format("attention {} causal {}", l.heads, l.causal);
}
std::string text_of(const std::vector<nn::LayerSpec>& layers);
std::string text_of(const nn::Residual& l) { return fmt::format("residual ({})", text_of(l.layers)); }
std::string text_of(const std::vector<nn::LayerSpec>& layers) {
  std::string text;
  for (const nn::LayerSpec& layer : layers)
    text +=
        (text.empty() ? "" : ", ") + std::visit([](const auto& l) { return text_of(l); }, layer.variant());
  return text;
}
/// The number of a loss, but for two_hot: checkpoints with loss 2 are of bins that are weighted by their logarithms.
std::string loss_text(nn::Loss loss) {
  return loss == nn::Loss::two_hot ? "two_hot of symexp" : std::to_string(int(loss));
}
std::string network_text(const nn::NetworkSpec& spec) {
  return fmt::format("{}: {}; loss {}", to_string(Sizes(spec.input)), text_of(spec.layers),
                     loss_text(spec.loss));
}

}  // namespace

record::Identity identity_of(const Task& task, const TrainOptions& options) {
  record::Identity id("forecast train");
  const auto given = [](auto value) { return value > 0; };
  id.option("task", task.name, true);
  id.option("model", task.model, !options.model.empty());
  id.option("network", network_text(task.network));
  id.option("trainer", options.trainer);
  id.option("steps", task.steps, given(options.steps), Effect::extent);
  id.option("batch", task.batch, given(options.batch));
  if (options.parts > 1) id.option("parts", options.parts, true);
  id.option("evaluate-every", task.evaluate_every, given(options.evaluate_every));
  id.option("validation-examples", task.validation_examples);
  id.option("precision", name(options.precision));
  if (options.target_loss) id.option("target-loss", *options.target_loss, true, Effect::extent);
  const nn::OptimizerOptions& o = task.optimizer;
  id.option("optimizer", optimize::name(o.method));
  id.option("momentum", o.momentum);
  id.option("weight-decay", o.weight_decay);
  id.option("clip-norm", o.clip_norm);
  const nn::Schedule& s = o.schedule;
  using Decay = nn::Schedule::Decay;
  id.option("rate", s.rate, options.rate.has_value());
  id.option("warmup", s.warmup);
  id.option("schedule", name(s.decay), options.decay.has_value());
  if (s.decay == Decay::cosine || s.decay == Decay::linear) {
    id.option("schedule-total", s.total, given(options.steps));
    id.option("final-share", s.final_share);
  }
  if (s.decay == Decay::step) {
    id.option("schedule-every", s.every);
    id.option("schedule-factor", s.factor);
  }
  for (const auto& [name, data] :
       {std::pair{"train", &task.train}, {"held", &task.held}, {"validation", &task.validation}}) {
    id.option(fmt::format("{}-window", name), data->window);
    id.array(fmt::format("{}-inputs", name), data->inputs);
    id.array(fmt::format("{}-targets", name), data->targets);
  }
  return id;
}

void write_checkpoint(const std::filesystem::path& path, const record::Identity& identity,
                      const TrainingState& state, const TrainRun& run) {
  io::NpzArrays arrays;
  const std::string json = identity.to_json();
  arrays.emplace_back("identity", Array::of(std::vector<uint8_t>(json.begin(), json.end())));
  arrays.emplace_back("counters",
                      Array::of(std::vector<int64_t>{state.step, state.optimizer_steps, state.moment_steps,
                                                     run.jumps, run.accepted}));
  arrays.emplace_back("seconds", Array::of(std::vector<double>{run.seconds}));
  std::vector<double> log;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const LogRow& r : run.log)
    log.insert(log.end(), {double(r.step), r.train_loss, r.rate, r.val_loss.value_or(kNone),
                           r.val_accuracy.value_or(kNone), r.seconds, double(r.jumps), double(r.accepted)});
  arrays.emplace_back("log", Array::of(std::move(log), {int64_t(run.log.size()), int64_t(kColumns)}));
  arrays.emplace_back("parameters", state.parameters);
  arrays.emplace_back("optimizer_first", state.first);
  arrays.emplace_back("optimizer_second", state.second);
  arrays.emplace_back("optimizer_move", state.move);
  for (const auto& [name, array] : state.policy) arrays.emplace_back("policy_" + name, array);
  io::write_npz(path, arrays);
}

std::optional<TrainingState> read_checkpoint(const std::filesystem::path& path,
                                             const record::Identity& identity, const Task& task,
                                             TrainRun& run) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  constexpr int64_t kLongestIdentity = 1 << 20;
  const io::NpzFile file(path);
  const std::string& where = file.where();
  const std::vector<uint8_t> saved = values<uint8_t>(file, "identity", {-1}, kLongestIdentity);
  const auto stored =
      record::Identity::from_json(io::parse_json(std::string(saved.begin(), saved.end()), where), where);
  record::require_same(stored, identity, where);
  const std::vector<int64_t> counters = values<int64_t>(file, "counters", {5});
  for (const int64_t counter : counters)
    if (counter < 0) throw InputError(fmt::format("a counter of {}", counter), where, kExpected);
  if (counters[0] > task.steps)
    throw InputError(fmt::format("a checkpoint after {} steps", counters[0]), where,
                     fmt::format("at most the {} steps of this run", task.steps));
  const double seconds = values<double>(file, "seconds", {1})[0];
  // A row for the start, and at most one for each step.
  const int64_t rows = counters[0] + 1;
  const std::vector<double> log =
      values<double>(file, "log", {-1, int64_t(kColumns)}, rows * int64_t(kColumns));
  if (log.empty()) throw InputError("an empty log", where, kExpected);
  for (size_t i = 0; i < log.size(); ++i)
    if (kIsCount[i % kColumns] && !(log[i] >= 0 && log[i] <= 0x1p53))
      throw InputError(fmt::format("{} in row {} of the log", log[i], i / kColumns), where, kExpected);
  TrainingState state;
  state.step = counters[0];
  state.optimizer_steps = counters[1];
  state.moment_steps = counters[2];
  const int64_t parameters = nn::parameter_count(task.network);
  state.parameters = vector_of(file, "parameters", parameters);
  for (auto [name, to] : {std::pair{"optimizer_first", &state.first},
                          {"optimizer_second", &state.second},
                          {"optimizer_move", &state.move}}) {
    *to = vector_of(file, name, parameters);
    if (to->storage() != state.parameters.storage())
      throw InputError(fmt::format("{} of {}", name, lockstep::name(to->storage())), where,
                       std::string(lockstep::name(state.parameters.storage())));
  }
  for (const std::string& name : file.names())
    if (name.starts_with("policy_")) state.policy.emplace_back(name.substr(7), file.read(name));
  run.jumps = counters[3];
  run.accepted = counters[4];
  run.seconds = seconds;
  const auto optional = [](double v) { return std::isnan(v) ? std::nullopt : std::optional<double>(v); };
  for (size_t i = 0; i < log.size(); i += kColumns)
    run.log.push_back({int64_t(log[i]), log[i + 1], log[i + 2], optional(log[i + 3]), optional(log[i + 4]),
                       log[i + 5], int64_t(log[i + 6]), int64_t(log[i + 7])});
  return state;
}

}  // namespace lockstep::forecast
