// Weights of a rollout: random, from files, and whether they fit together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/numbers/random.hpp"
#include "forecast/rollout/weights/named_arrays.hpp"
#include "io/arrays/npz_file.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/rollout.hpp"

std::span<const lockstep::Choice<lockstep::nn::GruForm>> lockstep::nn::choices(GruForm) {
  static constexpr auto kAll = std::to_array<Choice<GruForm>>(
      {{"reset-before", GruForm::reset_before}, {"reset-after", GruForm::reset_after}});
  return kAll;
}
std::string_view lockstep::nn::name(GruForm form) { return name_among(choices(form), form); }

namespace lockstep::forecast {

std::span<const Choice<Heads>> choices(Heads) {
  static constexpr auto kAll =
      std::to_array<Choice<Heads>>({{"classic", Heads::classic}, {"two-hot", Heads::two_hot}});
  return kAll;
}
std::string_view name(Heads heads) { return name_among(choices(heads), heads); }

namespace {

constexpr const char* kGates[] = {"z", "r", "h"};
constexpr const char *kForm = "gru", *kHeads = "heads";
constexpr int64_t kMostHidden = 1 << 16, kMostStates = 1 << 16;

class UniformStream {
 public:
  explicit UniformStream(uint64_t seed) : key_(random_key(seed)) {}
  /// Array number `which` of the model: numbers in [low, high).
  Array array(uint32_t which, Sizes shape, double low, double high, Storage storage) const {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    std::vector<double> v(static_cast<size_t>(count));
    for (uint64_t i = 0; i < v.size(); ++i)  // size_t has 32 bits on a page
      v[i] = low + (high - low) * random_unit(uint32_t(i), which | uint32_t(i >> 32) << 8, key_);
    return Array::of(std::move(v), std::move(shape)).to(storage);
  }

 private:
  uint32_t key_;
};

std::string shape_text(const Sizes& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return text + ")";
}

/// One array against what the others say of it.
void check_array(const Array& a, const std::string& array, const Sizes& shape, Storage storage,
                 std::string_view where) {
  const std::string place = fmt::format("{}: {}", where, array);
  if (a.shape() != shape) throw InputError("shape " + shape_text(a.shape()), place, shape_text(shape));
  if (a.storage() != storage)
    throw InputError(fmt::format("elements of {}", name(a.storage())), place,
                     fmt::format("{}, as U_z has: one type in all arrays", name(storage)));
}

/// Calls `take(name, array)` for each array that a model with these heads may have; none: with any.
template <class Model, class Take>
void each_array(Model& model, std::optional<Heads> heads, const Take& take) {
  for (size_t g = 0; g < 3; ++g) {
    take(fmt::format("W_{}", kGates[g]), model.w[g]);
    take(fmt::format("U_{}", kGates[g]), model.u[g]);
    take(fmt::format("b_{}", kGates[g]), model.b[g]);
    take(fmt::format("rb_{}", kGates[g]), model.rb[g]);
  }
  if (heads != Heads::two_hot) take("w", model.head);
  take("features", model.features), take("h0", model.h0);
  if (heads == Heads::classic) return;
  take("P", model.projection), take("P_b", model.projection_bias);
  take("V", model.bins), take("V_b", model.bins_bias);
}

void check_finite(const RolloutModel& model, Heads heads, std::string_view where) {
  each_array(model, heads, [&](const std::string& name, const Array& a) {
    if (a.empty()) return;
    if (const auto bad = first_not_finite(a.packed()))
      throw InputError("not finite at " + index_text(a.shape(), *bad), fmt::format("{}: {}", where, name),
                       "finite numbers");
  });
}

void check_optional(const RolloutModel& model, const Sizes& per_row, Storage storage,
                    std::string_view where) {
  for (size_t g = 0; g < 3; ++g)
    if (!model.rb[g].empty())
      check_array(model.rb[g], fmt::format("rb_{}", kGates[g]), per_row, storage, where);
  if (!model.h0.empty()) check_array(model.h0, "h0", per_row, storage, where);
}

void check_two_hot(const RolloutModel& model, std::string_view where) {
  const Storage storage = model.storage();
  const int64_t d = model.hidden();
  const auto place = [&](const char* array) { return fmt::format("{}: {}", where, array); };
  if (model.projection.rank() != 3 || model.projection.empty())
    throw InputError("shape " + shape_text(model.projection.shape()), place("P"),
                     "categoricals, classes, hidden");
  const int64_t c = model.projection.size(0), k = model.projection.size(1);
  check_array(model.projection, "P", {c, k, d}, storage, where);
  check_array(model.projection_bias, "P_b", {c, k}, storage, where);
  if (model.bins.rank() != 2 || model.bins.size(0) < 2)
    throw InputError("shape " + shape_text(model.bins.shape()), place("V"),
                     "2 bins or more, hidden + categoricals classes");
  check_array(model.bins, "V", {model.bins.size(0), d + c * k}, storage, where);
  check_array(model.bins_bias, "V_b", {model.bins.size(0)}, storage, where);
}

}  // namespace

namespace {

/// Names of choices as arrays of a model.
template <class E>
Array text_array(E value) {
  const std::string_view text = name(value);
  return Array::of(std::vector<uint8_t>(text.begin(), text.end()));
}
template <class E>
std::optional<E> choice_in(const Array& text, const char* array, std::string_view where) {
  if (text.storage() == Storage::u8 && text.rank() == 1) {
    const std::span<const uint8_t> bytes = text.as<uint8_t>();
    for (const Choice<E>& choice : choices(E()))
      if (std::ranges::equal(choice.name, bytes, [](char a, uint8_t b) { return uint8_t(a) == b; }))
        return choice.value;
  }
  std::string known;
  for (const Choice<E>& choice : choices(E()))
    known += fmt::format("{}{}", known.empty() ? "" : " or ", choice.name);
  throw InputError("another text", fmt::format("{}: {}", where, array), known);
}
template <class E>
void expect_learned(const std::optional<E>& learned, E now, const char* flag, std::string_view where) {
  if (learned && *learned != now)
    throw InputError(fmt::format("weights learned with {} {}", flag, name(*learned)), where,
                     fmt::format("{} {}", flag, name(*learned)));
}

/// Types and shapes alone: of a file whose arrays are not read yet, too.
void check_shapes(const RolloutModel& model, GruForm form, Heads heads, std::string_view where) {
  const auto place = [&](const std::string& array) { return fmt::format("{}: {}", where, array); };
  expect_learned(model.form, form, "--gru", where);
  expect_learned(model.heads, heads, "--heads", where);
  if (model.u[0].rank() != 3 || model.u[0].empty() || model.u[0].size(1) != model.u[0].size(2))
    throw InputError("shape " + shape_text(model.u[0].shape()), place("U_z"), "members, hidden, hidden");
  if (model.w[0].rank() != 3 || model.w[0].empty())
    throw InputError("shape " + shape_text(model.w[0].shape()), place("W_z"), "members, hidden, features");
  const Storage storage = model.storage();
  if (storage != Storage::f32 && storage != Storage::f64)
    throw InputError(fmt::format("elements of {}", name(storage)), place("U_z"), "f32 or f64");
  const int64_t m = model.members(), d = model.hidden(), inputs = model.inputs();
  if (d > kMostHidden)
    throw InputError(fmt::format("{} hidden", d), place("U_z"), fmt::format("at most {}", kMostHidden));
  for (size_t g = 0; g < 3; ++g) {
    check_array(model.w[g], fmt::format("W_{}", kGates[g]), {m, d, inputs}, storage, where);
    check_array(model.u[g], fmt::format("U_{}", kGates[g]), {m, d, d}, storage, where);
    check_array(model.b[g], fmt::format("b_{}", kGates[g]), {m, d}, storage, where);
    if (form == GruForm::reset_before && !model.rb[g].empty())
      throw InputError("a recurrent bias", place(fmt::format("rb_{}", kGates[g])),
                       "none with --gru reset-before");
  }
  check_optional(model, {m, d}, storage, where);
  if (model.features.rank() > 2 || model.features.empty())
    throw InputError("shape " + shape_text(model.features.shape()), place("features"),
                     "features, or batch, features");
  check_array(model.features, "features",
              model.features.rank() == 2 ? Sizes{model.batch(), inputs} : Sizes{inputs}, storage, where);
  if (heads == Heads::two_hot) return check_two_hot(model, where);
  if (model.head.rank() != 1 || model.head.size(0) <= d || model.head.size(0) > d + kMostStates)
    throw InputError("shape " + shape_text(model.head.shape()), place("w"),
                     fmt::format("hidden + states: {} to {}", d + 1, d + kMostStates));
  check_array(model.head, "w", model.head.shape(), storage, where);
}

}  // namespace

void check(const RolloutModel& model, GruForm form, Heads heads, std::string_view where) {
  check_shapes(model, form, heads, where);
  check_finite(model, heads, where);
}

RolloutModel random_rollout_model(const RandomModelOptions& o) {
  const UniformStream random(o.seed);
  RolloutModel model;
  const double s = std::sqrt(2.0 / double(o.features + o.hidden));
  const auto zeros = [&](Sizes shape) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    return Array::of(std::vector<double>(size_t(count), 0.0), std::move(shape)).to(o.storage);
  };
  for (uint32_t g = 0; g < 3; ++g) {
    model.w[g] = random.array(g, {o.members, o.hidden, o.features}, -s, s, o.storage);
    model.u[g] = random.array(3 + g, {o.members, o.hidden, o.hidden}, -s, s, o.storage);
    model.b[g] = zeros({o.members, o.hidden});
  }
  model.head = random.array(6, {o.hidden + o.states}, -0.01, 0.01, o.storage);
  Array features = random.array(7, {o.batch, o.features}, -1, 1, Storage::f64);
  const std::span<double> x = features.mutate<double>();
  for (int64_t b = 0; b < o.batch; ++b) x[size_t(b * o.features)] += 2;
  model.features = features.to(o.storage);
  const int64_t all = o.categoricals * o.classes;
  const double p = std::sqrt(1.0 / double(o.hidden)), v = std::sqrt(1.0 / double(o.hidden + all));
  model.projection = random.array(8, {o.categoricals, o.classes, o.hidden}, -p, p, o.storage);
  model.projection_bias = zeros({o.categoricals, o.classes});
  model.bins = random.array(9, {o.bins, o.hidden + all}, -v, v, o.storage);
  std::vector<double> weights;
  for (int64_t n = 0; n < o.bins; ++n) {
    const double bin = 40.0 * double(n) / double(o.bins - 1) - 20;
    weights.push_back(-8 * (bin - 1) * (bin - 1));
  }
  model.bins_bias = Array::of(std::move(weights)).to(o.storage);
  return model;
}

RolloutModel load_rollout_model(const std::filesystem::path& path, Heads heads) {
  const io::NpzFile file(path);
  RolloutModel model;
  const io::ArrayLimits text{Storage::u8, 1, {}, 64};
  if (file.has(kForm)) model.form = choice_in<GruForm>(file.read(kForm, text).packed(), kForm, file.where());
  if (file.has(kHeads))
    model.heads = choice_in<Heads>(file.read(kHeads, text).packed(), kHeads, file.where());
  each_array(model, heads, [&](const std::string& name, Array& a) {
    const bool optional = name == "h0" || name.starts_with("rb_");
    if (optional && !file.has(name)) return;
    const io::NpyHeader header = file.header(name);
    a = Array::adopt(header.storage, header.shape, nullptr, nullptr);
  });
  const bool recurrent =
      std::any_of(std::begin(model.rb), std::end(model.rb), [](const Array& bias) { return !bias.empty(); });
  const GruForm form = model.form ? *model.form : recurrent ? GruForm::reset_after : GruForm::reset_before;
  check_shapes(model, form, heads, file.where());
  each_array(model, heads, [&](const std::string& name, Array& a) {
    if (file.has(name)) a = file.read(name, {a.storage(), -1, a.shape()}).packed();
  });
  check_finite(model, heads, file.where());
  return model;
}

RolloutModel model_of(const std::map<std::string, Array>& arrays, std::string_view where) {
  RolloutModel model;
  std::map<std::string, Array*> known;
  each_array(model, {}, [&](const std::string& name, Array& a) { known[name] = &a; });
  for (const auto& [name, array] : arrays) {
    if (name == kForm) model.form = choice_in<GruForm>(array.packed(), kForm, where);
    if (name == kHeads) model.heads = choice_in<Heads>(array.packed(), kHeads, where);
    if (name == kForm || name == kHeads) continue;
    const auto found = known.find(name);
    if (found == known.end())
      throw InputError("array " + name, std::string(where),
                       "W_z W_r W_h U_… b_… w features [h0 rb_… P P_b V V_b gru heads]");
    *found->second = array;
  }
  return model;
}

std::vector<std::pair<std::string, Array>> arrays_of(const RolloutModel& model) {
  std::vector<std::pair<std::string, Array>> arrays;
  each_array(model, {}, [&](const std::string& name, const Array& a) {
    if (!a.empty()) arrays.emplace_back(name, a);
  });
  if (model.form) arrays.emplace_back(kForm, text_array(*model.form));
  if (model.heads) arrays.emplace_back(kHeads, text_array(*model.heads));
  return arrays;
}

void save_rollout_model(const RolloutModel& model, const std::filesystem::path& path) {
  const auto arrays = arrays_of(model);
  io::write_npz(path, io::NpzArrays(arrays.begin(), arrays.end()), io::NpzCompression::stored,
                {.title = "ensemble of recurrent networks"});
}

}  // namespace lockstep::forecast
