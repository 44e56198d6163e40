// Cases of rollouts: sizes are members x batch x hidden x steps, 64 features, 32 states.
#include "forecast/rollout/cases.hpp"

#include <fmt/format.h>

#include <memory>

#include "forecast/rollout/reference.hpp"

namespace lockstep::forecast {

namespace {

struct RolloutCase {
  GruForm form = GruForm::reset_before;
  RolloutPath path = RolloutPath::one_launch;
  Storage storage = Storage::f32;
  Heads heads = Heads::classic;
  WeightType weights = WeightType::f32;
  bool many =
      false;  // starting points: those that fast numerics take by the kernel for batches, where it can be
};

RolloutModel case_model(const std::string& size, uint64_t seed, Storage storage) {
  const std::vector<int64_t> n = parse_size(size);
  return random_rollout_model(
      {.hidden = n[2], .members = n[0], .batch = n[1], .seed = seed, .storage = storage});
}

template <class T>
std::vector<Array> reference_arrays(const RolloutModel& model, const RolloutOptions& options) {
  reference::Raw<T> raw = reference::rollout<T>(model, options);
  const int64_t m = model.members(), b = model.batch(), steps = options.steps;
  std::vector<Array> arrays{Array::of(std::move(raw.losses), {m, b, steps}),
                            Array::of(std::move(raw.norms), {m, b, steps}),
                            Array::of(std::move(raw.entropies), {m, b, steps}),
                            Array::of(std::move(raw.states), {m, b, model.hidden()})};
  if (options.heads == Heads::two_hot) arrays.push_back(Array::of(std::move(raw.variances), {m, b, steps}));
  return arrays;
}

Case rollout_case(const RolloutCase& r) {
  const bool f64 = r.storage == Storage::f64;
  Case c;
  const bool narrow = r.weights != WeightType::f32;
  c.name = fmt::format("forecast.rollout.{}{}{}{}{}",
                       r.many                              ? "batch"
                       : r.path == RolloutPath::by_steps   ? "by_steps"
                       : r.path == RolloutPath::by_rows    ? "by_rows"
                       : r.path == RolloutPath::one_launch ? "one_launch"
                                                           : "chosen",
                       r.heads == Heads::two_hot        ? ".two_hot"
                       : r.form == GruForm::reset_after ? ".reset_after"
                                                        : "",
                       narrow ? "." : "", narrow ? name(r.weights) : "", f64 ? ".f64" : "");
  c.dtype = f64 ? "f64" : "f32";
  c.needs_f64 = f64;
  c.small = {"1x1x1x1", "2x1x3x3", "1x3x33x5", "2x1x70x2"};
  c.full = {"5x1x256x3", "1x1x1024x1", "2x2x1100x1"};
  if (r.path == RolloutPath::automatic) {  // sizes that the native kernel takes, where there is one
    c.small = {"1x1x128x2", "2x2x128x3"};
    c.full = {"5x1x256x50", "1x1x512x7"};
  }
  c.bench = {"5x1x256x50", "5x1x512x50", "5x1x1024x50", "5x16x256x50"};
  if (r.many) {
    c.small = {"2x9x64x3", "1x17x128x2"};
    c.full = {"5x128x512x2", "5x100x256x5", "3x50x448x3", "2x30x320x3", "1x300x192x4"};
    c.bench = {"5x128x512x50", "5x128x256x50"};
  }
  // In f32 the places of the two-hot bins are rounded to 1e-6 of them.
  c.reference = Bound::relative(f64 ? 1e-12 : r.heads == Heads::two_hot ? 5e-6 : 1e-6);
  c.webgpu = Bound::relative(1e-5);  // the draws of two-hot heads may fall otherwise
  c.fast = Bound::relative(f64 ? 1e-11 : 1e-4);
  c.make = [=](const std::string& size, uint64_t seed) {
    const std::vector<int64_t> n = parse_size(size);
    const auto model = std::make_shared<const RolloutModel>(case_model(size, seed, r.storage));
    const RolloutOptions options{
        .form = r.form, .heads = r.heads, .steps = n[3], .path = r.path, .weights = r.weights};
    const double word = f64 ? 8 : 4, rows = double(n[0]) * double(n[2]);
    CaseProblem p;
    // The weights once, regardless of which stay on the chip; inputs and outputs.
    const double recurrent = r.weights == WeightType::fp8 ? 1 : narrow ? 2 : word;
    p.bytes = 3 * rows * (recurrent * double(n[2]) + word * 64) + word * double(n[0] * n[1] * n[3]) * 3;
    p.flops = 2.0 * double(n[1]) * rows * (double(n[3]) * 3 * double(n[2]) + 3 * 64);
    p.reference = [=] {
      if (narrow) {
        RolloutModel rounded = *model;
        for (Array& u : rounded.u) u = round_weights(u, r.weights);
        return reference_arrays<float>(rounded, options);
      }
      return f64 ? reference_arrays<double>(*model, options) : reference_arrays<float>(*model, options);
    };
    p.bind = [=](const Device& device) {
      const auto rollout = std::make_shared<Rollout>(device, *model, options);
      // Later launches of native kernels are replays: both ways run.
      if (r.path == RolloutPath::automatic) rollout->launch();
      return CaseRun{[=] { rollout->launch(); }, [=] { return rollout->raw(); }};
    };
    return p;
  };
  c.kernels = [=] {
    return Rollout(Device::open("interp"), case_model("1x1x256x1", 1, r.storage),
                   {.form = r.form, .heads = r.heads, .steps = 1, .path = r.path, .weights = r.weights})
        .kernels();
  };
  return c;
}

}  // namespace

void add_rollout_cases(CaseRegistry& registry) {
  for (const Storage storage : {Storage::f32, Storage::f64})
    for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
      for (const RolloutPath path : {RolloutPath::one_launch, RolloutPath::by_steps, RolloutPath::by_rows})
        registry.add(rollout_case({form, path, storage}));
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
    for (const bool many : {false, true})
      registry.add(
          rollout_case({form, RolloutPath::automatic, Storage::f32, Heads::classic, WeightType::f32, many}));
  for (const Storage storage : {Storage::f32, Storage::f64})
    for (const RolloutPath path : {RolloutPath::one_launch, RolloutPath::by_steps, RolloutPath::by_rows})
      registry.add(rollout_case({GruForm::reset_before, path, storage, Heads::two_hot}));
  for (const WeightType weights : {WeightType::bf16, WeightType::fp8})
    for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
      for (const RolloutPath path : {RolloutPath::one_launch, RolloutPath::by_steps, RolloutPath::by_rows})
        registry.add(rollout_case({form, path, Storage::f32, Heads::classic, weights}));
}

}  // namespace lockstep::forecast
