// Buffers and launches of a rollout.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/numbers/random.hpp"
#include "device/variants/memory.hpp"
#include "forecast/rollout/batch/batch.hpp"
#include "forecast/rollout/cluster/cluster.hpp"
#include "forecast/rollout/kernels.hpp"
#include "forecast/rollout/weights/packing.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {

namespace {

/// by_steps goes through so many bytes of weights at a time, members one after the other: they then stay in the last
/// cache from step to step.
constexpr int64_t kCachedBytes = 12 << 20;

/// P of one_launch on the CPU: the rows that a vector of f32 computes lie together. 32 take 1.2 times as long, 256 1.5 times.
constexpr int64_t kCpuRows = 16;
int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// Words that a points kernel of this device computes side by side.
int64_t vector_lanes(const Device& device, const Kernel& kernel, Storage storage) {
  device.prepare(kernel);
  int64_t lanes = 8;
  for (const KernelReport& report : device.kernels())
    if (report.name == kernel.name() && report.group_lanes > 0) lanes = report.group_lanes;
  if (storage == Storage::f64) lanes /= 2;
  return std::clamp<int64_t>(lanes, 4, 64);
}

/// `filled`: no rows beyond the blocks of p.
RolloutLayout layout_of(const RolloutModel& model, const RolloutOptions& options, int64_t p,
                        bool filled = false) {
  RolloutLayout l;
  l.members = model.members(), l.batch = model.batch(), l.hidden = model.hidden(), l.inputs = model.inputs();
  l.states = model.head.empty() ? 0 : model.head.size(0) - l.hidden;
  l.steps = options.steps;
  l.weights = options.weights;
  if (l.weights == WeightType::fp8) l.bias_rows = 7;
  l.p = p;
  l.blocks = round_up(l.hidden, filled ? std::max<int64_t>(p, kChains) : p) / p;
  l.rows = round_up(l.blocks * p, kChains);
  l.columns = round_up(l.hidden, kChains);
  l.head = l.rows + l.states;
  l.values = 3;
  if (options.heads == Heads::two_hot) {
    const HeadShape s = head_shape(model, options.heads);
    l.states = 0;
    l.head = (l.columns + 1) * s.classes() + (l.columns + s.classes() + 1) * s.bins;
    l.values = 4;
  }
  return l;
}

/// Lanes of a group: all rows where they fit, else the fewest equal blocks.
int64_t lanes_of(int64_t hidden, int64_t most) {
  most = std::max<int64_t>(most / kChains * kChains, kChains);
  const int64_t blocks = (hidden + most - 1) / most;
  return round_up((hidden + blocks - 1) / blocks, kChains);
}

}  // namespace

const variants::Computation& rollout_computation() {
  static const variants::Computation computation(
      {.name = "forecast.rollout",
       .variants = {"one_launch", "by_steps", "by_rows", "cluster", "batch"},
       .axes = {"groups", "member_bytes"},
       .by_numerics = true});
  return computation;
}

struct Rollout::State {
  Device device;
  RolloutModel model;
  RolloutOptions options;
  RolloutLayout layout;
  RolloutMemory memory;
  RolloutPath path = RolloutPath::one_launch;
  int capacity = 0;
  ClusterPlan cluster;
  BatchPlan batch;
  std::string no_batch;
  HeadShape shape;
  uint32_t key = 0;
  Buffer zr, n, input, bias, head, h0, features, pre, work, last, out;
  std::optional<Graph> graph;
  bool launched = false;

  template <class F>
  auto with_type(F f) const {
    return model.storage() == Storage::f64 ? f(f64()) : f(f32());
  }

  /// f of a value of the elements' type and one of U's.
  template <class F>
  auto with_types(F f) const {
    if (model.storage() == Storage::f64) return f(f64(), f64());
    switch (options.weights) {
      case WeightType::bf16: return f(f32(), lockstep::bf16());
      case WeightType::fp8: return f(f32(), uint8_t());
      case WeightType::f32: break;
    }
    return f(f32(), f32());
  }

  /// By a graph of launches, not one.
  bool in_steps() const { return path == RolloutPath::by_steps || path == RolloutPath::by_rows; }

  /// A native kernel is launched plainly once, then replayed: on an idle device a graph of one launch starts sooner.
  bool again() {
    const bool native = path == RolloutPath::cluster || path == RolloutPath::batch;
    return native && std::exchange(launched, true);
  }

  int64_t element_bytes() const {  // of U
    return options.weights == WeightType::bf16  ? 2
           : options.weights == WeightType::fp8 ? 1
                                                : size_of(model.storage());
  }

  /// Why a path does not run this rollout; makes the plan of a native one.
  std::string refusal(RolloutPath of) {
    if (of == RolloutPath::batch) return (batch = batch_plan(device, model, options)).refusal;
    if (of == RolloutPath::cluster) return (cluster = cluster_plan(device, model, options)).refusal;
    return {};
  }

  RolloutPath fastest_path() {
    constexpr RolloutPath kPaths[] = {RolloutPath::one_launch, RolloutPath::by_steps, RolloutPath::by_rows,
                                      RolloutPath::cluster, RolloutPath::batch};
    const variants::Axis axes[] = {
        {"groups", double(model.members() * model.batch())},
        {"member_bytes", double(3 * model.hidden() * model.hidden() * element_bytes())}};
    const std::string_view of = options.heads == Heads::two_hot ? "two-hot"
                                : model.batch() == 1            ? "one start"
                                                                : "many starts";
    const auto applies = [&](int variant) { return refusal(kPaths[variant]); };
    const auto scratch = [&](int variant) {
      lay_out(kPaths[variant]);
      return memory.weights + memory.state;
    };
    return kPaths[variants::choose(rollout_computation(), device, {of, axes}, {},
                                   variants::with_memory(rollout_computation(), device, applies, scratch))
                      .variant];
  }

  void choose_path() {
    path = options.path;
    if (path == RolloutPath::automatic) {
      path = fastest_path();
      // Of the native kernels, even where the table prefers others.
      if (path != RolloutPath::batch && batch_gains(device, model)) no_batch = refusal(RolloutPath::batch);
      if (path != RolloutPath::batch && path != RolloutPath::cluster) (void)refusal(RolloutPath::cluster);
    } else if (const std::string why = refusal(path); !why.empty()) {
      throw UnsupportedError(why,
                             path == RolloutPath::batch ? "forecast rollout by the kernel for batches"
                                                        : "forecast rollout by a cluster",
                             "another path");
    }
    lay_out(path);
  }

  /// By a path that runs this rollout; its memory.
  void lay_out(RolloutPath by) {
    path = by;
    capacity = 0;
    memory = {};
    set_layout();
    predict();
  }

  void set_layout() {
    with_types([&]<class T, class W>(T, W) {
      if (path == RolloutPath::batch) {
        layout = layout_of(model, options, model.hidden() / batch.blocks);
        memory.shared_per_group = batch.shared_bytes;
        return;
      }
      if (path == RolloutPath::cluster) {
        layout = layout_of(model, options, model.hidden() / 16);
        memory.shared_per_group = cluster.shared_bytes;
        return;
      }
      if (path == RolloutPath::by_steps) {
        layout =
            layout_of(model, options,
                      vector_lanes(device, step_kernels<T, W>(options.form, shape).gates, model.storage()));
        return;
      }
      if (path == RolloutPath::by_rows) {
        layout = layout_of(model, options, 1);
        layout.chained = false;
        return;
      }
      const Limits& limits = device.info().limits;
      const int64_t p = capabilities_of(device).vectors
                            ? kCpuRows
                            : lanes_of(model.hidden(), std::min<int64_t>(limits.group_lanes, 1024));
      layout = layout_of(model, options, p, true);
      const int64_t bytes = shared_bytes<T>(shape, int(layout.rows));
      capacity = bytes <= limits.shared_bytes ? int(layout.rows) : 0;
      memory.shared_per_group = shared_bytes<T>(shape, capacity);
    });
  }

  void predict() {
    const RolloutLayout& l = layout;
    const int64_t word = size_of(model.storage()), mb = l.members * l.blocks, g = l.groups();
    const bool by_batch = path == RolloutPath::batch;
    const int64_t recurrent =
        3 * l.columns / (by_batch || (path == RolloutPath::cluster && cluster.tensor) ? 2 : 1);
    memory.weights =
        mb * recurrent * l.p * element_bytes() +
        word * (mb * (3 * l.inputs + l.bias_rows) * l.p + l.head + l.members * l.rows + l.batch * l.inputs);
    memory.state = by_batch ? word * (exchange_words(batch, l.members) + g * l.rows)
                            : word * (g * l.blocks * 3 * l.p + g * 3 * l.rows + (in_steps() ? g : 0));
    memory.outputs = word * l.values * g * std::max<int64_t>(l.steps, 1);
  }

  void allocate() {
    const RolloutLayout& l = layout;
    const Storage storage = model.storage();
    PackedWeights packed = with_type([&]<class T>(T) { return pack<T>(model, l); });
    if (path == RolloutPath::cluster) pack_cluster(cluster, model, l, packed);
    if (path == RolloutPath::batch) pack_batch(batch, model, l, packed);
    zr = device.upload(packed.zr), n = device.upload(packed.n), input = device.upload(packed.input);
    bias = device.upload(packed.bias), head = device.upload(packed.head), h0 = device.upload(packed.h0);
    features = device.upload(model.features.packed().reshape({l.batch, l.inputs}));
    if (path == RolloutPath::batch)
      pre = device.allocate(storage, {exchange_words(batch, l.members) / 32, 1, 32});
    else
      pre = device.allocate(storage, {l.groups() * l.blocks, 3, l.p});
    work = device.allocate(storage, {l.groups(), path == RolloutPath::batch ? 1 : 3, l.rows});
    out = device.allocate(storage, {l.values, l.groups(), std::max<int64_t>(l.steps, 1)});
    device.clear(work);
    if (in_steps()) last = device.allocate(storage, {l.groups()});
  }

  template <class T, class W>
  Kernel whole_kernel() const {
    if (path == RolloutPath::cluster) return cluster_kernel(cluster, model, options.form, device.numerics());
    if (path == RolloutPath::batch) return batch_kernel(batch, model, options.form);
    return one_launch_kernel<T, W>(options.form, shape, int(layout.p), capacity);
  }
  template <class T, class W>
  void launch_whole() const {
    const RolloutLayout& l = layout;
    const int64_t groups = path == RolloutPath::batch ? l.members * batch.parts : l.groups();
    device.launch(whole_kernel<T, W>(), {groups}, zr, n, input, bias, head, features, h0, pre, work, out,
                  l.batch, l.steps, l.hidden, l.states, key);
  }

  template <class T, class W>
  void launch_rows() const {
    const RolloutLayout& l = layout;
    const RowKernels<T> k = row_kernels<T, W>(options.form, shape);
    const bool before = options.form == GruForm::reset_before;
    const int64_t parts = l.groups() * row_groups(l.hidden);
    device.launch(step_kernels<T, W>(options.form, shape).begin, {l.groups(), l.blocks, l.p}, input, bias,
                  features, h0, pre, work, last, l.batch);
    for (int64_t t = 0; t < l.steps; ++t) {
      const int64_t from = before ? 0 : t % 2, to = before ? 0 : 1 - from;
      device.launch(k.gates, {parts}, zr, n, input, bias, head, features, pre, last, work, out, l.batch, from,
                    t, l.hidden, l.states, key);
      if (before) device.launch(k.candidate, {parts}, n, input, bias, pre, last, work, l.batch, l.hidden);
      if (shape.heads == Heads::two_hot || t + 1 == l.steps)
        device.launch(k.head, {l.groups()}, head, work, last, out, to, t, l.hidden, l.states, key);
    }
  }

  template <class T, class W>
  void launch_steps() const {
    if (path == RolloutPath::by_rows) return launch_rows<T, W>();
    const RolloutLayout& l = layout;
    const StepKernels<T> k = step_kernels<T, W>(options.form, shape);
    const bool before = options.form == GruForm::reset_before;
    const int64_t member_bytes = l.blocks * l.p * l.columns * 3 * int64_t(sizeof(T));
    const int64_t at_once = std::clamp<int64_t>(kCachedBytes / member_bytes, 1, l.members);
    for (int64_t first = 0; first < l.members; first += at_once) {
      const int64_t m = std::min(at_once, l.members - first), groups = m * l.batch, g0 = first * l.batch;
      const auto of_members = [&](const Buffer& b) { return b.rows(first * l.blocks, m * l.blocks); };
      const Buffer z = of_members(zr), u = of_members(n), w = of_members(input), b = of_members(bias);
      const Buffer p = pre.rows(g0 * l.blocks, groups * l.blocks), h = work.rows(g0, groups),
                   loss = last.rows(g0, groups);
      const Buffer results = out.window({0, g0, 0}, {l.values, groups, l.steps});
      const Shape extent{groups, l.blocks, l.p};
      device.launch(k.begin, extent, w, b, features, h0.rows(first, m), p, h, loss, l.batch);
      for (int64_t t = 0; t < l.steps; ++t) {
        const int64_t from = before ? 0 : t % 2, to = before ? 0 : 1 - from;
        device.launch(k.gates, extent, z, u, w, b, p, loss, h, l.batch, from);
        if (before) device.launch(k.candidate, extent, u, w, b, p, loss, h, l.batch);
        device.launch(k.head, {groups}, head, h, loss, results, to, t, g0, l.hidden, l.states, key);
      }
    }
  }
};

Rollout::Rollout(const Device& device, const RolloutModel& model, const RolloutOptions& options)
    : state_(std::make_unique<State>()) {
  check(model, options.form, options.heads, "forecast rollout");
  if (options.steps < 0 || options.steps > kMostRolloutSteps)
    throw InputError(fmt::format("{} steps", options.steps), "forecast rollout",
                     fmt::format("0 to {}", kMostRolloutSteps));
  State& s = *state_;
  s.device = device, s.model = model, s.options = options;
  if (options.weights != WeightType::f32) {
    if (model.storage() != Storage::f32)
      throw InputError(fmt::format("weights in {} of a model in f64", name(options.weights)),
                       "forecast rollout", "a model in f32");
    constexpr const char* kNames[3] = {"U_z", "U_r", "U_h"};
    for (size_t g = 0; g < 3; ++g) round_weights(model.u[g], options.weights, kNames[g]);
  }
  s.shape = head_shape(model, options.heads);
  s.key = random_key(options.seed);
  s.choose_path();
  s.allocate();
}
Rollout::~Rollout() = default;
Rollout::Rollout(Rollout&&) noexcept = default;
Rollout& Rollout::operator=(Rollout&&) noexcept = default;

void Rollout::launch() {
  State& s = *state_;
  if (s.options.steps == 0) return;
  s.with_types([&]<class T, class W>(T, W) {
    if (!s.in_steps() && !s.again()) return s.launch_whole<T, W>();
    if (!s.graph)
      s.graph = s.device.record([&] { s.in_steps() ? s.launch_steps<T, W>() : s.launch_whole<T, W>(); });
    s.device.replay(*s.graph);
  });
}

std::vector<Array> Rollout::raw() const {
  const State& s = *state_;
  const RolloutLayout& l = s.layout;
  std::vector<Array> raw;
  const Array all = s.device.download(s.out);
  const auto value = [&](int64_t k) {
    return all[k].slice(1, 0, s.options.steps).copy().reshape({l.members, l.batch, s.options.steps});
  };
  for (int64_t k = 0; k < 3; ++k) raw.push_back(value(k));
  if (s.options.steps == 0) {
    Array start = s.model.h0;
    if (start.empty())
      start = Array::of(std::vector<double>(size_t(l.members * l.hidden), 0.0)).to(s.model.storage());
    start = start.packed().reshape({l.members, 1, l.hidden});
    raw.push_back(start);
    if (l.values > 3) raw.push_back(value(3));
    return raw;
  }
  const bool second = s.in_steps() && s.options.form == GruForm::reset_after && s.options.steps % 2 == 1;
  const Array work = s.device.download(s.work);
  raw.push_back(
      work.slice(1, second ? 1 : 0, 1).slice(2, 0, l.hidden).copy().reshape({l.members, l.batch, l.hidden}));
  if (l.values > 3) raw.push_back(value(3));
  return raw;
}

std::vector<Forecast> Rollout::result() const { return forecasts_of(raw(), state_->model, state_->options); }
const RolloutMemory& Rollout::memory() const { return state_->memory; }
RolloutPath Rollout::path() const { return state_->path; }
const std::string& Rollout::no_cluster() const { return state_->cluster.refusal; }
const std::string& Rollout::no_batch() const { return state_->no_batch; }
std::string Rollout::state_place() const {
  if (state_->path == RolloutPath::cluster || state_->path == RolloutPath::batch)
    return "a cluster's shared memory";
  return state_->path == RolloutPath::one_launch && state_->capacity > 0 ? "shared memory" : "buffers";
}

std::vector<Kernel> Rollout::kernels() const {
  const State& s = *state_;
  return s.with_types([&]<class T, class W>(T, W) -> std::vector<Kernel> {
    if (!s.in_steps()) return {s.whole_kernel<T, W>()};
    if (s.path == RolloutPath::by_rows) {
      const RowKernels<T> r = row_kernels<T, W>(s.options.form, s.shape);
      std::vector<Kernel> all{step_kernels<T, W>(s.options.form, s.shape).begin, r.gates, r.head};
      if (s.options.form == GruForm::reset_before) all.push_back(r.candidate);
      return all;
    }
    const StepKernels<T> k = step_kernels<T, W>(s.options.form, s.shape);
    if (s.options.form == GruForm::reset_after) return {k.begin, k.gates, k.head};
    return {k.begin, k.gates, k.candidate, k.head};
  });
}

RolloutRun run_rollout(Context& context, const RolloutModel& model, const RolloutOptions& options) {
  return context.stage("forecast.rollout", [&](const Device& device) {
    const int64_t before = device.counters().allocated_bytes;
    Rollout rollout(device, model, options);
    RolloutRun run;
    run.memory = rollout.memory();
    run.used_bytes = device.counters().allocated_bytes - before;
    rollout.launch();
    run.forecasts = rollout.result();
    run.path = rollout.path() == RolloutPath::batch        ? "one launch of clusters for batches"
               : rollout.path() == RolloutPath::cluster    ? "one launch of clusters"
               : rollout.path() == RolloutPath::one_launch ? "one launch"
               : rollout.path() == RolloutPath::by_rows    ? "launches by rows"
                                                           : "launches by steps";
    run.no_cluster = rollout.no_cluster();
    run.no_batch = rollout.no_batch();
    run.state_place = rollout.state_place();
    return run;
  });
}

}  // namespace lockstep::forecast
