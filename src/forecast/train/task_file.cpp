// Tasks of .toml files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "core/reports/log.hpp"
#include "forecast/train/task.hpp"
#include "io/arrays/npy.hpp"
#include "io/text/toml.hpp"
#include "lockstep/error.hpp"
#include "optimize/first_order.hpp"

namespace lockstep::forecast {

namespace {

constexpr int64_t kMostWhole = 1 << 24;

/// A table whose keys are all taken.
class Keys {
 public:
  Keys(const io::TomlTable& table, std::string where) : table_(table), where_(std::move(where)) {}
  const io::TomlValue* take(std::string_view key) {
    taken_.emplace_back(key);
    return io::find(table_, key);
  }
  void integer(std::string_view key, int64_t& to, int64_t most = kMostWhole) {
    const auto* v = take(key);
    if (!v) return;
    to = v->integer(where_);
    if (to > most)
      throw InputError(fmt::format("{} = {} in line {}", key, to, v->line()), where_,
                       fmt::format("at most {}", most));
  }
  /// Throws InputError for a key that has no effect.
  void useless(std::string_view key, bool used, std::string_view beside) const {
    if (const auto* v = io::find(table_, key); v && !used)
      throw InputError(fmt::format("{} has no effect with {}, line {}", key, beside, v->line()), where_,
                       fmt::format("no {}", key));
  }
  void number(std::string_view key, double& to) {
    if (const auto* v = take(key)) to = v->number(where_);
  }
  void boolean(std::string_view key, bool& to) {
    if (const auto* v = take(key)) to = v->boolean(where_);
  }
  std::string text(std::string_view key, std::string otherwise) {
    const auto* v = take(key);
    return v ? v->text(where_) : std::move(otherwise);
  }
  const std::string& where() const { return where_; }
  /// Throws InputError for a key that nothing requested.
  void finish() const {
    for (const auto& [key, value] : table_) {
      std::string known;
      bool found = false;
      for (const std::string& t : taken_) {
        found |= t == key;
        known += (known.empty() ? "" : ", ") + t;
      }
      if (!found) throw InputError(fmt::format("key '{}' in line {}", key, value.line()), where_, known);
    }
  }

 private:
  const io::TomlTable& table_;
  std::string where_;
  std::vector<std::string> taken_;
};

nn::LayerSpec layer_of(const io::TomlTable& table, const std::string& where);

std::vector<nn::LayerSpec> layers_of(const io::TomlValue& list, const std::string& where) {
  std::vector<nn::LayerSpec> layers;
  for (const io::TomlValue& v : list.array(where)) layers.push_back(layer_of(v.table(where), where));
  return layers;
}

nn::LayerSpec layer_of(const io::TomlTable& table, const std::string& where) {
  Keys keys(table, where);
  const std::string kind = keys.text("kind", "");
  nn::LayerSpec layer;
  if (kind == "dense") {
    nn::Dense l;
    keys.integer("units", l.units);
    l.activation = nn::parse_activation(keys.text("activation", "identity"));
    keys.boolean("bias", l.bias);
    layer = l;
  } else if (kind == "conv2d") {
    nn::Conv2d l;
    keys.integer("channels", l.channels);
    keys.integer("height", l.height);
    keys.integer("width", l.width);
    keys.integer("stride", l.stride);
    keys.integer("padding", l.padding);
    l.activation = nn::parse_activation(keys.text("activation", "identity"));
    layer = l;
  } else if (kind == "max_pool2d") {
    nn::MaxPool2d l;
    keys.integer("size", l.size);
    l.stride = l.size;
    keys.integer("stride", l.stride);
    layer = l;
  } else if (kind == "flatten") {
    layer = nn::Flatten{};
  } else if (kind == "layer_norm") {
    nn::LayerNorm l;
    keys.number("epsilon", l.epsilon);
    layer = l;
  } else if (kind == "embedding") {
    nn::Embedding l;
    keys.integer("vocabulary", l.vocabulary);
    keys.integer("width", l.width);
    keys.boolean("positions", l.positions);
    layer = l;
  } else if (kind == "dropout") {
    nn::Dropout l;
    keys.number("rate", l.rate);
    layer = l;
  } else if (kind == "gru") {
    nn::Gru l;
    keys.integer("units", l.units);
    const std::string form = keys.text("form", "reset-before");
    if (form != "reset-before" && form != "reset-after")
      throw InputError(fmt::format("form '{}'", form), where, "reset-before or reset-after");
    l.form = form == "reset-before" ? nn::GruForm::reset_before : nn::GruForm::reset_after;
    layer = l;
  } else if (kind == "attention") {
    nn::Attention l;
    keys.integer("heads", l.heads);
    keys.boolean("causal", l.causal);
    layer = l;
  } else if (kind == "residual") {
    const io::TomlValue* inner = keys.take("layers");
    if (!inner) throw InputError("residual without layers", where, "layers = [ … ]");
    layer = nn::Residual{layers_of(*inner, where)};
  } else {
    throw InputError(
        fmt::format("layer kind '{}'", kind), where,
        "dense, conv2d, max_pool2d, flatten, layer_norm, embedding, dropout, gru, attention or residual");
  }
  keys.finish();
  return layer;
}

nn::OptimizerOptions optimizer_of(const io::TomlTable& table, const std::string& where) {
  nn::OptimizerOptions o;
  Keys keys(table, where);
  const std::string method = keys.text("method", "adam");
  const optimize::FirstOrderRow* row = optimize::first_order(method);
  if (!row) throw InputError(fmt::format("method '{}'", method), where, optimize::first_order_names());
  o.method = row->method;
  keys.number("rate", o.schedule.rate);
  o.schedule.decay = nn::parse_decay(keys.text("schedule", "constant"));
  keys.integer("warmup", o.schedule.warmup);
  keys.number("final_share", o.schedule.final_share);
  keys.integer("every", o.schedule.every);
  keys.number("factor", o.schedule.factor);
  keys.number("momentum", o.momentum);
  keys.number("weight_decay", o.weight_decay);
  keys.number("clip_norm", o.clip_norm);
  keys.finish();
  using Decay = nn::Schedule::Decay;
  const std::string with_method = "method " + method;
  const auto with_schedule = fmt::format("schedule {}", nn::name(o.schedule.decay));
  keys.useless("momentum", row->has_momentum, with_method);
  keys.useless("weight_decay", row->has_decay, with_method);
  keys.useless("final_share", o.schedule.decay == Decay::cosine || o.schedule.decay == Decay::linear,
               with_schedule);
  for (const char* key : {"every", "factor"})
    keys.useless(key, o.schedule.decay == Decay::step, with_schedule);
  return o;
}

/// Inputs as f32 or, for an embedding, i32; targets as i32 for classes, else f32. Numbers must be held exactly.
Array as_elements(const Array& from, bool whole, const char* what, const std::string& where) {
  return with_element(from.storage(), [&]<class E>(E) -> Array {
    if constexpr (std::is_same_v<E, bool> || std::is_same_v<E, f16> || std::is_same_v<E, bf16>) {
      throw InputError(fmt::format("{} of {}", what, name(from.storage())), where, "numbers");
    } else {
      const auto* data = reinterpret_cast<const E*>(from.data());
      std::vector<i32> integers;
      std::vector<f32> floats;
      for (int64_t i = 0; i < from.elements(); ++i) {
        const double v = double(data[i]);
        if (!std::isfinite(whole ? v : double(f32(v))) ||
            (whole && (v != std::floor(v) || v < 0 || v > 2147483647.0)))
          throw InputError(fmt::format("{} element {} is {}", what, i, v), where,
                           whole ? "whole numbers from 0" : "finite numbers in the range of f32");
        if (whole)
          integers.push_back(i32(v));
        else
          floats.push_back(f32(v));
      }
      return whole ? Array::of(std::move(integers), from.shape())
                   : Array::of(std::move(floats), from.shape());
    }
  });
}

/// The end of examples that are sorted by class is no sample of them.
void doubt_classes(const Task& task, const std::string& where) {
  const auto classes_of = [](const Dataset& part) {
    const auto targets = part.targets.as<i32>();
    return std::set<i32>(targets.begin(), targets.end());
  };
  const std::set<i32> trained = classes_of(task.train), tested = classes_of(task.validation);
  const auto doubt = [&](const char* part, const std::set<i32>& has, const std::set<i32>& other) {
    std::vector<i32> missing;
    std::set_difference(other.begin(), other.end(), has.begin(), has.end(), std::back_inserter(missing));
    if (!missing.empty())
      logging::warning("{}: no example of class {} is for {}: validation_share takes the end, unshuffled",
                       where, fmt::join(missing, ", "), part);
  };
  doubt("training", trained, tested);
  doubt("validation", tested, trained);
}

void read_data(Task& task, const std::filesystem::path& file, std::optional<double> share) {
  const std::string where = file.string();
  const io::NpzArrays arrays =
      io::read_npz(file, {"inputs", "targets", "validation_inputs", "validation_targets"});
  const bool tokens = std::holds_alternative<nn::Embedding>(task.network.layers.front().variant());
  const auto set = [&](const std::string& prefix) {
    const std::string inputs = prefix + "inputs", targets = prefix + "targets";
    Dataset d{as_elements(io::find_array(arrays, inputs, where), tokens, inputs.c_str(), where),
              as_elements(io::find_array(arrays, targets, where), task.classes(), targets.c_str(), where), 0};
    if (d.inputs.rank() < 2 || d.inputs.rank() > 4 || d.targets.rank() < 1 || d.inputs.size(0) < 1 ||
        d.targets.size(0) != d.inputs.size(0))
      throw InputError(fmt::format("{} {}, {} {}", inputs, to_string(d.inputs.shape()), targets,
                                   to_string(d.targets.shape())),
                       where, "(n, …) and (n, …)");
    return d;
  };
  const Dataset all = set("");
  const int64_t n = all.count();
  for (int a = 1; a < all.inputs.rank(); ++a) task.network.input.push_back(all.inputs.size(a));
  bool given = false;
  for (const auto& [key, array] : arrays) given |= key == "validation_inputs";
  if (given && share) throw InputError("validation_share and validation_inputs", where, "one of the two");
  const double part_of_all = share.value_or(0.2);
  const int64_t validation = given ? 0 : int64_t(std::llround(part_of_all * double(n)));
  const int64_t held = std::min<int64_t>(256, n / 20);
  if ((!given && validation < 1) || n - validation - held < 1)
    throw InputError(fmt::format("{} examples, validation_share {}", n, part_of_all), where,
                     "1 or more for training and for validation");
  task.train = part(all, 0, n - validation - held);
  task.held = held > 0 ? part(all, n - validation - held, held) : task.train;
  task.validation = given ? set("validation_") : part(all, n - validation, validation);
  const auto same_rest = [](const Array& a, const Array& b) {
    return std::equal(a.shape().begin() + 1, a.shape().end(), b.shape().begin() + 1, b.shape().end());
  };
  if (!same_rest(task.validation.inputs, all.inputs) || !same_rest(task.validation.targets, all.targets))
    throw InputError(
        fmt::format("validation_inputs {}, validation_targets {}", to_string(task.validation.inputs.shape()),
                    to_string(task.validation.targets.shape())),
        where,
        fmt::format("(n, …) as inputs {} and targets {}", to_string(all.inputs.shape()),
                    to_string(all.targets.shape())));
  if (task.classes() && !given) doubt_classes(task, where);
}

}  // namespace

Task read_task(const std::filesystem::path& file, const std::filesystem::path& data) {
  const std::string where = file.string();
  const io::TomlTable table = io::read_toml(file);
  Keys keys(table, where);
  Task task;
  task.name = file.stem().string();
  task.model = "file";
  const std::string loss = keys.text("loss", "cross_entropy");
  if (loss != "cross_entropy" && loss != "mean_squared" && loss != "two_hot")
    throw InputError(fmt::format("loss '{}'", loss), where, "cross_entropy, mean_squared or two_hot");
  task.network.loss = loss == "cross_entropy"  ? nn::Loss::cross_entropy
                      : loss == "mean_squared" ? nn::Loss::mean_squared
                                               : nn::Loss::two_hot;
  keys.integer("steps", task.steps, std::numeric_limits<int64_t>::max());
  keys.integer("batch", task.batch);
  keys.integer("evaluate_every", task.evaluate_every);
  if (task.steps < 1 || task.batch < 1 || task.evaluate_every < 1)
    throw InputError(
        fmt::format("steps {}, batch {}, evaluate_every {}", task.steps, task.batch, task.evaluate_every),
        where, "1 or more");
  std::optional<double> share;
  if (const auto* v = keys.take("validation_share")) share = v->number(where);
  if (const auto* v = keys.take("optimizer")) task.optimizer = optimizer_of(v->table(where), where);
  task.optimizer.schedule.total = task.steps;
  const auto* layers = keys.take("layers");
  if (!layers) throw InputError("no layers", where, "[[layers]] with kind = …");
  task.network.layers = layers_of(*layers, where);
  const std::string examples = keys.text("data", "");
  keys.finish();
  if (task.network.layers.empty() || examples.empty())
    throw InputError(examples.empty() ? "no data" : "no layers", where, "data = \"FILE.npz\" and [[layers]]");
  read_data(task, data / examples, share);
  return task;
}

}  // namespace lockstep::forecast
