// Windows of observations, gradients through them, steps of the optimiser.
#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <optional>

#include "forecast/observe/kernels.hpp"
#include "forecast/observe/two_hot.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/gru.hpp"

namespace lockstep::forecast {

namespace {

constexpr int64_t kMostWindow = 1024;

/// Gates (M, D, width) of a member side by side, (width, 3 D).
template <class T>
void to_columns(const std::array<Array, 3>& gates, int64_t m, int64_t width, std::vector<T>& to) {
  const int64_t d = gates[0].size(1);
  const size_t first = to.size();
  to.resize(first + size_t(3 * width * d));
  for (int64_t g = 0; g < 3; ++g) {
    const std::span<const T> from = gates[size_t(g)].as<T>().subspan(size_t(m * d * width));
    for (int64_t j = 0; j < d; ++j)
      for (int64_t k = 0; k < width; ++k)
        to[first + size_t((k * 3 + g) * d + j)] = from[size_t(j * width + k)];
  }
}
template <class T>
const T* from_columns(const T* from, int64_t m, int64_t width, std::array<Array, 3>& gates) {
  const int64_t d = gates[0].size(1);
  for (int64_t g = 0; g < 3; ++g) {
    const std::span<T> to = gates[size_t(g)].mutate<T>().subspan(size_t(m * d * width));
    for (int64_t j = 0; j < d; ++j)
      for (int64_t k = 0; k < width; ++k) to[size_t(j * width + k)] = from[(k * 3 + g) * d + j];
  }
  return from + 3 * width * d;
}

}  // namespace

std::span<const Choice<Objective>> choices(Objective) {
  static constexpr auto kAll = std::to_array<Choice<Objective>>(
      {{"logarithmic", Objective::logarithmic}, {"squared", Objective::squared}});
  return kAll;
}
std::string_view name(Objective objective) { return name_among(choices(objective), objective); }

struct OnlineEnsemble::State {
  Device device;
  RolloutModel model;  // its shapes; weights are on the device
  ObserveOptions options;
  int64_t members, hidden, inputs, states = 0, count = 0;  // states: of classic heads; count: observations
  Buffer parameters, gradients, head, d_head;
  Buffer starts, h, d_h, x, loss, found;  // (M, D), (M, D), (M, T, D), (T, 1, I), (1), (M, kFoundCount)
  Buffer observation;                     // (1): count, on the device
  std::optional<TwoHotHead> two_hot;
  std::optional<nn::Optimizer> optimizer;
  std::vector<GruSequence> sequences;  // of T steps, a member each
  std::deque<std::vector<double>> rows;
  std::optional<Graph> graph;

  /// Arrays of the head, in their order in `head`.
  std::vector<Array*> head_arrays(RolloutModel& of) const {
    if (options.heads == Heads::classic) return {&of.head};
    return {&of.projection, &of.projection_bias, &of.bins, &of.bins_bias};
  }
  bool after() const { return options.form == GruForm::reset_after; }
  Storage storage() const { return model.storage(); }
  GruShape shape(int64_t steps) const { return {options.form, steps, 1, inputs, hidden, storage()}; }
  int64_t member_size() const { return GruSequence::parameter_count(shape(1)); }
  template <class F>
  auto with_type(F f) const {
    return storage() == Storage::f64 ? f(f64()) : f(f32());
  }

  template <class T>
  void upload() {
    std::vector<T> all;
    const Array zeros = Array::of(std::vector<T>(size_t(members * hidden)), {members, hidden});
    for (int64_t m = 0; m < members; ++m) {
      to_columns<T>(model.w, m, inputs, all);
      to_columns<T>(model.u, m, hidden, all);
      to_columns<T>(model.b, m, 1, all);
      if (after()) {
        std::array<Array, 3> rb;
        for (size_t g = 0; g < 3; ++g) rb[g] = model.rb[g].empty() ? zeros : model.rb[g];
        to_columns<T>(rb, m, 1, all);
      }
    }
    for (const Array* part : head_arrays(model)) {
      const Array whole = part->packed();
      all.insert(all.end(), whole.as<T>().begin(), whole.as<T>().end());
    }
    if (options.posterior.on) {  // Q = [P, 0], Q_b = P_b: the prior
      const int64_t ck = model.projection_bias.elements();
      const Array projection = model.projection.packed(), bias = model.projection_bias.packed();
      for (int64_t i = 0; i < ck; ++i) {
        const std::span<const T> row = projection.as<T>().subspan(size_t(i * hidden), size_t(hidden));
        all.insert(all.end(), row.begin(), row.end());
        all.push_back(T(0));
      }
      all.insert(all.end(), bias.as<T>().begin(), bias.as<T>().end());
    }
    parameters = device.upload(Array::of(std::move(all)));
    starts = device.upload(model.h0.empty() ? zeros : model.h0);
  }

  void allocate() {
    const auto make = [&](const Shape& sizes) {
      const Buffer buffer = device.allocate(storage(), sizes);
      device.clear(buffer);
      return buffer;
    };
    with_type([&]<class T>(T) { upload<T>(); });
    gradients = make(parameters.shape());
    const int64_t own = members * member_size(), rest = parameters.elements() - own;
    head = parameters.rows(own, rest), d_head = gradients.rows(own, rest);
    h = make({members, hidden}), loss = make({1}), found = make({members, kFoundCount});
    if (options.heads == Heads::two_hot) {
      observation = device.upload(Array::of(std::vector<int32_t>{0}));
      two_hot.emplace(device,
                      TwoHotShape{members, hidden, model.projection.size(0), model.projection.size(1),
                                  model.bins.size(0)},
                      head, d_head, options.seed, options.posterior);
    }
    optimizer.emplace(device, parameters, options.optimizer);
  }

  /// Sequences of `steps`, as many as were observed at the beginning.
  void lengthen(int64_t steps) {
    sequences.clear();
    const int64_t size = member_size();
    for (int64_t m = 0; m < members; ++m)
      sequences.emplace_back(device, shape(steps), parameters.rows(m * size, size),
                             gradients.rows(m * size, size));
    x = device.allocate(storage(), {steps, 1, inputs});
    d_h = device.allocate(storage(), {members, steps, hidden});
    device.clear(d_h);
    graph.reset();
  }

  template <class T>
  void launch_classic(const Buffer& at_end) {
    const ObserveKernels<T>& k = observe_kernels<T>(options.objective);
    device.launch(k.error, {members}, h, head, loss, found, states);
    device.launch(k.states, {members, hidden}, h, head, found, at_end, states);
    device.launch(k.head, {hidden + states}, h, found, d_head);
  }

  template <class T>
  void launch_gradient() {
    const int64_t steps = int64_t(rows.size());
    const auto last = [&](const Buffer& all, int64_t m) { return all.rows(m, 1); };
    for (int64_t m = 0; m < members; ++m) {
      sequences[size_t(m)].forward(x, starts.rows(m, 1));
      device.copy(sequences[size_t(m)].states().rows(steps, 1).reshape({1, hidden}), last(h, m));
    }
    const Buffer at_end =
        d_h.reshape({members, steps * hidden}).window({0, (steps - 1) * hidden}, {members, hidden});
    if (two_hot)
      two_hot->launch(h, loss, observation, found, at_end);
    else
      launch_classic<T>(at_end);
    for (int64_t m = 0; m < members; ++m)
      sequences[size_t(m)].backward(d_h.rows(m, 1).reshape({steps, 1, hidden}), options.decay);
    if (steps == options.window)
      for (int64_t m = 0; m < members; ++m)
        device.copy(sequences[size_t(m)].states().rows(1, 1).reshape({1, hidden}), starts.rows(m, 1));
  }

  template <class T>
  void write(const Buffer& to, std::span<const double> values) const {
    const std::vector<T> narrow(values.begin(), values.end());
    device.write(to, narrow.data(), int64_t(narrow.size() * sizeof(T)));
  }

  template <class T>
  Observation observe(std::span<const double> features, double value) {
    if (rows.size() == size_t(options.window)) rows.pop_front();
    rows.emplace_back(features.begin(), features.end());
    if (sequences.empty() || x.shape()[0] != int64_t(rows.size())) lengthen(int64_t(rows.size()));
    std::vector<double> all;
    for (const std::vector<double>& row : rows) all.insert(all.end(), row.begin(), row.end());
    write<T>(x, all);
    write<T>(loss, std::span(&value, 1));
    if (two_hot) {
      const int32_t now = int32_t(count);
      device.write(observation, &now, int64_t(sizeof now));
    }
    if (int64_t(rows.size()) < options.window) {
      launch_gradient<T>();
    } else {
      if (!graph) graph = device.record([&] { launch_gradient<T>(); });
      device.replay(*graph);
    }
    optimizer->launch_step(gradients);
    ++count;
    Observation seen;
    const std::vector<T> got = device.download<T>(found);
    for (int64_t m = 0; m < members; ++m) seen.members.push_back(got[size_t(m * kFoundCount + kPrediction)]);
    if (options.posterior.on)
      for (int64_t m = 0; m < members; ++m)
        seen.divergence += got[size_t(m * kFoundCount + kDivergence)] / double(members);
    for (const double p : seen.members) seen.predicted += p / double(members);
    return seen;
  }
};

OnlineEnsemble::OnlineEnsemble(const Device& device, const RolloutModel& model, const ObserveOptions& options)
    : state_(std::make_unique<State>()) {
  constexpr const char* kWhere = "forecast observe";
  check(model, options.form, options.heads, kWhere);
  if (model.batch() != 1) throw InputError(fmt::format("{} rows of features", model.batch()), kWhere, "one");
  if (options.window < 1 || options.window > kMostWindow)
    throw InputError(fmt::format("a window of {} steps", options.window), kWhere,
                     fmt::format("1 to {}", kMostWindow));
  if (!(options.decay >= 0 && options.decay <= 1))
    throw InputError(fmt::format("a decay of {}", options.decay), kWhere, "0 to 1");
  if (options.heads == Heads::two_hot && options.objective != Objective::logarithmic)
    throw InputError("a squared objective", kWhere, "none with two-hot heads, whose loss is a cross-entropy");
  const PosteriorTerm& term = options.posterior;
  if (term.on && options.heads != Heads::two_hot)
    throw InputError("a posterior of classic heads", kWhere, "two-hot heads");
  for (const double v : {term.free_nats, term.prior_weight, term.posterior_weight})
    if (!(v >= 0 && std::isfinite(v)))
      throw InputError(fmt::format("{} of the KL term", v), kWhere, "a finite number from 0 on");
  State& s = *state_;
  s.device = device, s.model = model, s.options = options;
  s.members = model.members(), s.hidden = model.hidden(), s.inputs = model.inputs();
  if (options.heads == Heads::classic) s.states = model.head.size(0) - s.hidden;
  if (s.states * s.hidden > INT32_MAX)
    throw InputError(fmt::format("{} states of {} hidden", s.states, s.hidden), kWhere,
                     fmt::format("a product of at most {}", INT32_MAX));
  s.allocate();
}
OnlineEnsemble::~OnlineEnsemble() = default;
OnlineEnsemble::OnlineEnsemble(OnlineEnsemble&&) noexcept = default;
OnlineEnsemble& OnlineEnsemble::operator=(OnlineEnsemble&&) noexcept = default;

Observation OnlineEnsemble::observe(std::span<const double> features, double loss) {
  State& s = *state_;
  const std::string place = fmt::format("observation {}", s.count);
  if (int64_t(features.size()) != s.inputs)
    throw InputError(fmt::format("{} features", features.size()), place, fmt::format("{}", s.inputs));
  for (size_t i = 0; i < features.size(); ++i)
    if (!std::isfinite(features[i]))
      throw InputError(fmt::format("feature {} is {}", i, features[i]), place, "finite numbers");
  const bool positive = s.options.heads == Heads::classic && s.options.objective == Objective::logarithmic;
  if (!std::isfinite(loss) || (positive && loss <= 0))
    throw InputError(fmt::format("a loss of {}", loss), place,
                     positive ? "a positive number" : "a finite number");
  return s.with_type([&]<class T>(T) { return s.observe<T>(features, loss); });
}
int64_t OnlineEnsemble::observations() const { return state_->count; }

RolloutModel OnlineEnsemble::model(std::span<const double> features) const {
  const State& s = *state_;
  if (int64_t(features.size()) != s.inputs)
    throw InputError(fmt::format("{} features", features.size()), "forecast observe",
                     fmt::format("{}", s.inputs));
  RolloutModel result = s.model;
  result.form = s.options.form, result.heads = s.options.heads;
  s.with_type([&]<class T>(T) {
    const std::vector<T> all = s.device.download<T>(s.parameters);
    const T* from = all.data();
    if (s.after())
      for (Array& rb : result.rb)
        rb = Array::of(std::vector<T>(size_t(s.members * s.hidden)), {s.members, s.hidden});
    for (int64_t m = 0; m < s.members; ++m) {
      from = from_columns(from, m, s.inputs, result.w);
      from = from_columns(from, m, s.hidden, result.u);
      from = from_columns(from, m, 1, result.b);
      if (s.after()) from = from_columns(from, m, 1, result.rb);
    }
    for (Array* part : s.head_arrays(result)) {
      const Sizes shape = part->shape();
      const int64_t n = part->packed().as<T>().size();
      *part = Array::of(std::vector<T>(from, from + n), shape);
      from += n;
    }
  });
  result.h0 = s.device.download(s.count > 0 ? s.h : s.starts);
  result.features = Array::of(std::vector<double>(features.begin(), features.end())).to(s.storage());
  return result;
}

Buffer OnlineEnsemble::gradient() const { return state_->gradients; }
Buffer OnlineEnsemble::parameters() const { return state_->parameters; }

std::vector<Kernel> OnlineEnsemble::kernels() const {
  const State& s = *state_;
  std::vector<Kernel> all = GruSequence(s.device, s.shape(1)).kernels();
  if (s.two_hot) {
    const std::vector<Kernel> heads = s.two_hot->kernels();
    all.insert(all.end(), heads.begin(), heads.end());
    return all;
  }
  s.with_type([&]<class T>(T) {
    const ObserveKernels<T>& k = observe_kernels<T>(s.options.objective);
    all.insert(all.end(), {k.error, k.states, k.head});
  });
  return all;
}

}  // namespace lockstep::forecast
